use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

use crate::address::Kind;
use crate::rules::{AddressRules, ChosenBy};
use crate::{
    Broken, Client, ClientSettings, Looked, Lookup, Named, Outbound, OutboundConfig, Redirects,
    collect, whole_story,
};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn every_form_of_an_address_is_of_one_kind() {
    use Kind::{LinkLocal, Loopback, Metadata, Multicast, Private, Public, Reserved, Unspecified};
    let table = [
        (
            Public,
            "8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 192.169.0.1 2606:4700::1111 \
                  64:ff9b::808:808 ::ffff:8.8.8.8 2002:808:808::1",
        ),
        (
            Private,
            "10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 fc00::1 fd12::1 fec0::1 \
                   ::ffff:10.0.0.1 ::10.0.0.1 ::ffff:0:10.0.0.1 64:ff9b::a00:1 64:ff9b:1::1 2002:a00:1:: 2606:4700::5efe:a00:1",
        ),
        (
            Loopback,
            "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::1",
        ),
        (
            LinkLocal,
            "169.254.169.254 169.254.0.1 fe80::1 febf::1 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::",
        ),
        (
            Metadata,
            "168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254 ::ffff:100.100.100.200",
        ),
        (Unspecified, "0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0"),
        (
            Multicast,
            "224.0.0.1 239.255.255.255 ff02::1 ::ffff:224.0.0.1",
        ),
        (
            Reserved,
            "192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 240.0.0.1 255.255.255.255 192.88.99.1 \
                    2001:db8::1 2001::1 3fff::1 100::1 4000::1 64:ff9b:2::1",
        ),
    ];
    for (kind, addresses) in table {
        for text in addresses.split_whitespace() {
            assert_eq!(Kind::of(address(text)), kind, "{text}");
        }
    }
}

#[test]
fn what_the_operator_names_may_be_private_and_no_name_leads_to_metadata() {
    let rules = |config: OutboundConfig| AddressRules::new(&config).unwrap();
    let usual = rules(OutboundConfig::default());
    let strict = rules(OutboundConfig {
        named_may_be_private: false,
        ..OutboundConfig::default()
    });
    let allowing = rules(OutboundConfig {
        allow: vec!["169.254.169.254".to_owned(), "10.0.0.0/8".to_owned()],
        ..OutboundConfig::default()
    });
    // Columns: for operators and for others by default, for operators in strict mode, and for others with `allow`.
    for (text, expected) in [
        ("8.8.8.8", [true, true, true, true]),
        ("10.0.0.1", [true, false, false, true]),
        ("127.0.0.1", [true, false, false, false]),
        ("::ffff:10.0.0.1", [true, false, false, true]),
        ("169.254.169.254", [false, false, false, true]),
        ("fd00:ec2::254", [false, false, false, false]),
        ("0.0.0.0", [false, false, false, false]),
        ("ff02::1", [false, false, false, false]),
    ] {
        let reached = |rules: &AddressRules, chosen| rules.against(address(text), chosen).is_none();
        let found = [
            reached(&usual, ChosenBy::Operator),
            reached(&usual, ChosenBy::Others),
            reached(&strict, ChosenBy::Operator),
            reached(&allowing, ChosenBy::Others),
        ];
        assert_eq!(found, expected, "{text}");
    }
}

struct Answers {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Answers {
    fn new(answers: &[&str]) -> Arc<Self> {
        let answer = |text: &&str| text.split_whitespace().map(address).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(answer).collect()),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Lookup for Answers {
    fn look_up(&self, _name: String) -> Looked {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.len() {
            1 => answers.front().cloned(),
            _ => answers.pop_front(),
        };
        async move { answer.ok_or_else(|| io::Error::other("no such name")) }.boxed()
    }
}

struct Server {
    at: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    _task: tokio::task::JoinSet<()>,
}

impl Server {
    async fn start(host: &str, port: u16, answer: String) -> Self {
        let listener = TcpListener::bind((host, port)).await.unwrap();
        let (at, requests) = (
            listener.local_addr().unwrap(),
            Arc::new(Mutex::new(Vec::new())),
        );
        let (mut task, seen) = (tokio::task::JoinSet::new(), requests.clone());
        task.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let read = stream.read(&mut request).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&request[..read]).into_owned();
                seen.lock().unwrap().push(text);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self {
            at,
            requests,
            _task: task,
        }
    }

    async fn ok() -> Self {
        Self::start("127.0.0.1", 0, answer("200 OK", "", "hello")).await
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

fn settings(redirects: Redirects) -> ClientSettings {
    ClientSettings {
        authority: None,
        identity: None,
        connect_timeout: Duration::from_secs(10),
        timeout: Some(Duration::from_secs(30)),
        connection_idle: Duration::ZERO,
        redirects,
    }
}

fn outbound(allow: &[&str], answers: &Arc<Answers>) -> Outbound {
    let config = OutboundConfig {
        allow: allow.iter().map(|&network| network.to_owned()).collect(),
        ..OutboundConfig::default()
    };
    Outbound::new(&config).unwrap().with_lookup(answers.clone())
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

async fn get(client: &Client, url: &Url) -> Result<reqwest::Response, String> {
    let request = client.request(Method::GET, url)?;
    request.send().await.map_err(|error| whole_story(&error))
}

const REFUSED: &str = "has an address that Shoal does not connect to";

#[tokio::test]
async fn what_others_name_is_not_connected_to_however_it_is_written() {
    let server = Server::ok().await;
    let port = server.at.port();
    let answers = Answers::new(&[
        "127.0.0.1 ::ffff:127.0.0.1 64:ff9b::7f00:1 169.254.169.254 10.0.0.1 0.0.0.0",
    ]);
    let client = |allow: &[&str]| {
        let named = Named::These(vec![url("https://named.example/openapi.json")]);
        outbound(allow, &answers)
            .client(settings(Redirects::None), named)
            .unwrap()
    };
    let closed = client(&[]);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "10.0.0.1",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "168.63.129.16",
        "224.0.0.1",
        "attacker.example",
        "localhost",
        "attacker.example.",
        "named.example",
    ] {
        let told = get(&closed, &url(&format!("http://{host}:{port}/"))).await;
        let told = told.expect_err(host);
        assert!(told.contains(REFUSED), "{host}: {told}");
    }
    assert_eq!(server.count(), 0);
    let open = client(&["127.0.0.0/8"]);
    for host in ["127.0.0.1", "127.1", "attacker.example"] {
        let answer = get(&open, &url(&format!("http://{host}:{port}/"))).await;
        assert_eq!(
            collect(answer.unwrap(), 5).await.unwrap(),
            "hello",
            "{host}"
        );
    }
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn a_refusal_does_not_tell_what_a_name_resolves_to() {
    let answers = Answers::new(&["10.11.12.13"]);
    let client =
        outbound(&[], &answers).client(settings(Redirects::None), Named::These(Vec::new()));
    let told = get(&client.unwrap(), &url("http://attacker.example/"))
        .await
        .unwrap_err();
    assert!(
        told.contains(REFUSED) && !told.contains("10.11.12.13"),
        "{told}"
    );
}

#[tokio::test]
async fn a_client_that_could_not_be_set_up_is_set_up_for_a_later_request() {
    let name = format!("shoal-outbound-{}.pem", std::process::id());
    let authority = std::env::temp_dir().join(name);
    std::fs::write(&authority, "").unwrap();
    let settings = ClientSettings {
        authority: Some(authority.clone()),
        ..settings(Redirects::None)
    };
    let client = Outbound::default().client(settings, Named::These(Vec::new()));
    let client = client.unwrap();
    let request = || client.request(Method::GET, &url("https://other.example/"));
    std::fs::remove_file(&authority).unwrap();
    let failed = request().unwrap_err();
    assert!(failed.contains("cannot read"), "{failed}");
    std::fs::write(&authority, "").unwrap();
    let later = request();
    std::fs::remove_file(&authority).unwrap();
    drop(later.unwrap());
}

#[tokio::test]
async fn hosts_of_the_operator_are_reached_unless_their_name_leads_to_metadata() {
    let server = Server::ok().await;
    let port = server.at.port();
    let named = url(&format!("http://inside.example:{port}/"));
    let reached = async |answers: &[&str]| {
        let named = Named::These(vec![named.clone()]);
        let client = outbound(&[], &Answers::new(answers)).client(settings(Redirects::None), named);
        get(
            &client.unwrap(),
            &url(&format!("http://inside.example:{port}/other")),
        )
        .await
        .map(drop)
    };
    assert_eq!(reached(&["127.0.0.1"]).await, Ok(()));
    for elsewhere in [
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "0.0.0.0",
        "::",
        "::ffff:169.254.169.254",
    ] {
        assert!(
            reached(&[elsewhere]).await.unwrap_err().contains(REFUSED),
            "{elsewhere}"
        );
    }
}

#[tokio::test]
async fn a_connection_goes_to_the_address_that_was_checked() {
    let checked = Server::start("127.0.0.1", 0, answer("200 OK", "", "checked")).await;
    let port = checked.at.port();
    let rebound = Server::start("127.0.0.2", port, answer("200 OK", "", "rebound")).await;
    // A second lookup would return a forbidden address.
    let answers = Answers::new(&["127.0.0.1", "127.0.0.2"]);
    let client = outbound(&["127.0.0.1"], &answers)
        .client(settings(Redirects::None), Named::These(Vec::new()))
        .unwrap();
    let target = url(&format!("http://attacker.example:{port}/"));
    let first = get(&client, &target).await.unwrap();
    assert_eq!(collect(first, 100).await.unwrap(), "checked");
    assert_eq!(answers.asked.load(Ordering::SeqCst), 1);
    let told = get(&client, &target).await.unwrap_err();
    assert!(told.contains(REFUSED), "{told}");
    let answers = Answers::new(&["127.0.0.2 127.0.0.1"]);
    let client = outbound(&["127.0.0.1"], &answers)
        .client(settings(Redirects::None), Named::These(Vec::new()))
        .unwrap();
    let mixed = get(&client, &target).await.unwrap();
    assert_eq!(collect(mixed, 100).await.unwrap(), "checked");
    assert_eq!((checked.count(), rebound.count()), (2, 0));
}

#[tokio::test]
async fn redirects_carry_nothing_to_other_origins() {
    let other = Server::ok().await;
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let location = format!("location: http://127.0.0.1:{}/stolen\r\n", other.at.port());
        let server = Server::start("127.0.0.1", 0, answer(status, &location, "")).await;
        let target = url(&format!("http://127.0.0.1:{}/", server.at.port()));
        for redirects in [Redirects::None, Redirects::WithinOrigin] {
            let client = Outbound::default()
                .client(settings(redirects), Named::All)
                .unwrap();
            let request = client.request(Method::GET, &target).unwrap();
            let answer = request.bearer_auth("secret").send().await.unwrap();
            assert!(answer.status().is_redirection(), "{status} {redirects:?}");
        }
        assert_eq!(server.count(), 2, "{status}");
    }
    assert_eq!(other.count(), 0);
}

#[tokio::test]
async fn a_request_carries_no_headers_but_its_own() {
    let server = Server::ok().await;
    let client = Outbound::default()
        .client(settings(Redirects::None), Named::All)
        .unwrap();
    get(&client, &url(&format!("http://{}/", server.at)))
        .await
        .unwrap();
    let request = server.requests.lock().unwrap()[0].to_ascii_lowercase();
    let names = request
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'));
    let mut names: Vec<&str> = names.map(|(name, _)| name).collect();
    names.sort_unstable();
    let expected = ["accept", "accept-encoding", "host", "user-agent"];
    assert_eq!(names, expected, "{request}");
    assert!(request.contains("accept-encoding: identity"), "{request}");
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit() {
    let server = Server::ok().await;
    let client = Outbound::default()
        .client(settings(Redirects::None), Named::All)
        .unwrap();
    let target = url(&format!("http://{}/", server.at));
    let read = async |limit| collect(get(&client, &target).await.unwrap(), limit).await;
    assert_eq!(read(5).await.unwrap(), "hello");
    assert_eq!(read(4).await, Err(Broken::TooLarge));
}
