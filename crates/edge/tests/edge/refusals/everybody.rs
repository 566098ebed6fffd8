use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use shoal_auth::{StaticTokens, TokenHash};
use shoal_edge::EdgeConfig;
use shoal_ports::{
    AuthError, Authenticated, Authenticator, Credentials, Grant, Memo, Operation, Principal,
    ProofFault, QuotaConfig, QuotaPer, ResourceMetadata, TokenFault,
};
use shoal_protocol::RawJson;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ping;
use super::rows::{Rows, compare};
use crate::dispatcher::LARGE as ANSWER;
use crate::gateway::LIVE;
use crate::server::{Server, header, rpc};

const LARGE: usize = 32 << 10;

pub(super) async fn callers(rows: &mut Rows) {
    let server = Server::start().await;
    let host = server.post(ping()).header("host", "evil.example.com");
    let body = rows.check("Host that is not served", host).await;
    assert!(body.get("id").is_none());
    let origin = server
        .post(ping())
        .header("origin", "http://evil.example.com");
    let body = rows.check("Origin that may not call", origin).await;
    assert!(body.get("id").is_none());
    let big = server.post(ping()).header("x-big", "x".repeat(33 << 10));
    rows.check("too many header bytes", big).await;
    let put = server.request(Method::PUT, "/mcp");
    rows.check("HTTP method that the path does not serve", put)
        .await;

    let guarded = Server::with_authenticator(alice(), |config| {
        config.limits.streams_per_principal = 0;
    })
    .await;
    let missing = guarded.post(ping()).send().await.unwrap();
    assert_eq!(header(&missing, "www-authenticate"), "Bearer");
    rows.check("no bearer token where one is needed", guarded.post(ping()))
        .await;
    let wrong = guarded.post(ping()).header("authorization", "Bearer wrong");
    rows.check("unknown bearer token", wrong).await;
    let listen = guarded.listen().header("authorization", "Bearer secret");
    rows.check("too many streams of a principal", listen).await;
}

pub(super) async fn tokens(rows: &mut Rows) {
    let server = Server::with_authenticator(Arc::new(Granting), |_| {}).await;
    for (what, token, challenge) in [
        ("access token that is not valid", "expired", "Token"),
        ("DPoP proof that is not valid", "replayed", "Proof"),
        (
            "access token without a scope that is needed",
            "weak",
            "Scope",
        ),
    ] {
        let request = || {
            let request = server.post(ping());
            request.header("authorization", format!("Bearer {token}"))
        };
        let answer = request().send().await.unwrap();
        let told = header(&answer, "www-authenticate");
        assert!(told.contains(challenge), "{what}: {told}");
        rows.check(what, request()).await;
    }
    let proofs = server.post(ping()).header("authorization", "Bearer proofs");
    rows.check(
        "more DPoP proofs of a principal than are remembered",
        proofs,
    )
    .await;
    let later = server.post(ping()).header("authorization", "Bearer later");
    rows.check("access token while the authorization server is away", later)
        .await;
    let strong = |request: reqwest::RequestBuilder| request.bearer_auth("strong");
    let welcome = strong(server.tool("echo")).send().await.unwrap();
    assert_eq!(welcome.status(), 200);
    let refused = strong(server.tool("large")).send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let batch = format!(
        "[{},{}]",
        ping(),
        rpc("tools/call", &json!({"name": "large"}))
    );
    let batch = strong(server.post(batch)).header("mcp-session-id", LIVE);
    assert_eq!(batch.send().await.unwrap().status(), 403);
    let public = server.request(Method::GET, "/.well-known/of-the-resource");
    let public = public
        .header("origin", "https://any.example.com")
        .send()
        .await
        .unwrap();
    assert_eq!(public.text().await.unwrap(), "{}");
}

struct Granting;

#[async_trait]
impl Authenticator for Granting {
    async fn authenticate(&self, shown: Credentials<'_>) -> Result<Authenticated, AuthError> {
        Err(
            match shown
                .token
                .and_then(|(_, token)| str::from_utf8(token).ok())
            {
                Some("strong") => {
                    let grant = Grant {
                        scopes: [].into(),
                        claims: RawJson::from_static("{}"),
                        until: None,
                        read: Memo::default(),
                    };
                    return Ok(Authenticated {
                        principal: Principal::new("alice"),
                        grant: Some(Arc::new(grant)),
                    });
                }
                Some("expired") => AuthError::Token(TokenFault::Expired),
                Some("replayed") => AuthError::Proof(ProofFault::Replayed),
                Some("proofs") => AuthError::TooManyProofs {
                    retry_after: Duration::from_secs(10),
                },
                Some("weak") => AuthError::Scope(["read".to_owned(), "write".to_owned()].into()),
                _ => AuthError::Unavailable {
                    reason: "nobody is there",
                    retry_after: Duration::from_secs(5),
                },
            },
        )
    }

    fn authorize(&self, _: &Grant, operation: &Operation<'_>) -> Result<(), AuthError> {
        match operation.parameter("name").as_deref() {
            Some("large") => Err(AuthError::Scope(["large".to_owned()].into())),
            _ => Ok(()),
        }
    }

    fn challenges(&self, why: &AuthError) -> Vec<String> {
        vec![format!("Test {why:?}")]
    }

    fn resource_metadata(&self) -> Option<ResourceMetadata> {
        Some(ResourceMetadata {
            paths: vec!["/.well-known/of-the-resource".to_owned()],
            document: "{}".into(),
        })
    }
}

pub(super) async fn shares(rows: &mut Rows) {
    let guarded = |set: fn(&mut EdgeConfig)| Server::with_authenticator(alice(), set);
    let none = guarded(|config| config.limits.requests_per_principal = 0).await;
    let request = none.post(ping()).header("authorization", "Bearer secret");
    rows.check("too many requests of a principal", request)
        .await;

    let crowded = guarded(|config| {
        config.limits.body_bytes = LARGE;
        config.limits.bodies_in_flight_bytes_per_principal = LARGE;
        config.body_wait = Duration::ZERO;
    })
    .await;
    let _all_of_it = announce_a_body(&crowded, LARGE, "authorization: Bearer secret\r\n").await;
    while crowded.load.body_bytes() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let late = crowded.post("x".repeat(LARGE));
    let late = late.header("authorization", "Bearer secret");
    rows.check("no room for a large body of a principal", late)
        .await;

    for (what, set) in [
        (
            "no room for the answer",
            (|config| {
                config.limits.answers_waiting_bytes = ANSWER;
                config.limits.answers_waiting_bytes_per_principal = usize::MAX / 2;
            }) as fn(&mut EdgeConfig),
        ),
        ("no room for the answer of a principal", |config| {
            config.limits.answers_waiting_bytes_per_principal = ANSWER;
        }),
    ] {
        let server = guarded(set).await;
        let _unread = server.unread("large", Some("secret")).await;
        while server.load.answer_bytes() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let request = server.tool("large");
        rows.check_id(what, request.header("authorization", "Bearer secret"))
            .await;
    }
}

fn alice() -> Arc<StaticTokens> {
    let token = (TokenHash::of("secret"), Principal::new("alice"));
    Arc::new(StaticTokens::new([token]))
}

async fn quotas(rows: &mut Rows) {
    let quota = |name: &str| QuotaConfig {
        name: name.to_owned(),
        per: QuotaPer::All,
        tools: Vec::new(),
        rate: None,
        burst: None,
        concurrent: None,
    };
    let slow = Server::with(|config| {
        config.quotas.push(QuotaConfig {
            rate: "1/h".parse().ok(),
            ..quota("slow")
        });
    })
    .await;
    let batch = format!("[{},{}]", ping(), ping());
    rows.check("batch larger than a quota", slow.post(batch))
        .await;
    assert_ne!(slow.post(ping()).send().await.unwrap().status(), 429);
    let told = rows.check("quota used up", slow.post(ping())).await;
    assert_eq!(told["id"], 7);
    assert_eq!(told["error"]["data"]["quota"], "slow");
    let narrow = Server::with(|config| {
        config.quotas.push(QuotaConfig {
            concurrent: Some(1),
            ..quota("narrow")
        });
    })
    .await;
    let _under_way = tokio::spawn(narrow.tool("played").send());
    let _answers_nothing = narrow.dispatcher.call().await;
    rows.check_id("too much under way of a quota", narrow.post(ping()))
        .await;
}

pub(super) async fn limits(rows: &mut Rows) {
    quotas(rows).await;
    let full = Server::with(|config| {
        config.limits.requests = 0;
        config.limits.streams = 0;
    })
    .await;
    rows.check("too many requests under way", full.post(ping()))
        .await;
    rows.check("too many streams on the node", full.listen())
        .await;

    let leaving = Server::start().await;
    leaving.load.stop_calls();
    rows.check_id("call at a node that shuts down", leaving.tool("echo"))
        .await;

    let crowded = Server::with(|config| {
        config.limits.body_bytes = LARGE;
        config.limits.bodies_in_flight_bytes = LARGE;
        config.body_wait = Duration::ZERO;
    })
    .await;
    let _all_of_it = announce_a_body(&crowded, LARGE, "").await;
    while crowded.load.body_bytes() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let late = crowded.post("x".repeat(LARGE));
    rows.check("no room for a large body", late).await;

    let server = Server::with(|config| {
        config.limits.body_bytes = 64;
        config.endpoint.body_timeout = Duration::from_millis(50).into();
    })
    .await;
    rows.check("body over the limit", server.post("x".repeat(65)))
        .await;
    let chunks =
        futures::stream::iter([Ok::<_, std::io::Error>("x".repeat(40)), Ok("x".repeat(40))]);
    let unknown_length = server.post("").body(reqwest::Body::wrap_stream(chunks));
    rows.check("body over the limit without a length", unknown_length)
        .await;
    let row = rows.row("body that does not arrive");
    let (status, body) = send_half_a_body(&server).await;
    compare(&row, status, &body);
}

async fn announce_a_body(server: &Server, length: usize, more: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: */*\r\ncontent-length: {length}\r\n{more}\r\n{{"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

async fn send_half_a_body(server: &Server) -> (u16, Value) {
    let mut socket = announce_a_body(server, 60, "").await;
    let mut answer = String::new();
    while !answer.contains("}}") {
        let mut read = [0; 1024];
        let length = socket.read(&mut read).await.unwrap();
        assert_ne!(length, 0, "{answer}");
        answer.push_str(std::str::from_utf8(&read[..length]).unwrap());
    }
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap())
}

pub(super) async fn malformed(rows: &mut Rows) {
    let server = Server::start().await;
    let accept = server
        .request(Method::POST, "/mcp")
        .header("accept", "text/event-stream");
    let accept = accept
        .header("content-type", "application/json")
        .body(ping());
    rows.check("Accept without application/json on POST", accept)
        .await;
    let content_type = server.request(Method::POST, "/mcp").header("accept", "*/*");
    let content_type = content_type
        .header("content-type", "text/plain")
        .body(ping());
    rows.check("Content-Type other than JSON", content_type)
        .await;
    let encoded = server.post(ping()).header("content-encoding", "gzip");
    rows.check("encoded body", encoded).await;
    for (what, body) in [
        ("malformed JSON", "{\"jsonrpc\":".to_owned()),
        (
            "nesting bomb",
            format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100)),
        ),
        (
            "repeated member",
            r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#.to_owned(),
        ),
        (
            "null id",
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(),
        ),
        (
            "fraction as id",
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(),
        ),
        ("empty batch", "[]".to_owned()),
    ] {
        let body = rows.check(what, server.post(body)).await;
        assert!(body.get("id").is_none(), "{what}");
    }
    let id = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
        "x".repeat(5000)
    );
    let body = rows
        .check("request id that is too long", server.post(id))
        .await;
    assert!(body.get("id").is_none());
    let method = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"{}"}}"#,
        "x".repeat(300)
    );
    rows.check_id("method that is too long", server.post(method))
        .await;
    let name = serde_json::json!({"name": "x".repeat(600)});
    let name = rpc("tools/call", &name).to_string();
    rows.check_id("parameter that is too long", server.post(name))
        .await;
    for (what, body) in [
        (
            "repeated member in params",
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":[{"b":1,"\u0062":2}]}}"#,
        ),
        (
            "name of a member that is no text",
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"\ud800":1}}"#,
        ),
        (
            "wrong jsonrpc",
            r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
        ),
        ("no method", r#"{"jsonrpc":"2.0","id":7}"#),
        (
            "params that are no object",
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
        ),
    ] {
        rows.check_id(what, server.post(body)).await;
    }
}
