use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Version, tls};
use shoal_edge::Connection;
use shoal_ports::ClientCertificate;
use shoal_rpc::{ListenerFiles, ListenerTls};
use shoal_telemetry::metrics::TlsPort;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::{REQUEST, SOON, all, limits};
use crate::http::{BoundHttp, HttpLimits, HttpServer, HttpTls};

struct Files {
    authority: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Files {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shoal-http-tls-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let files = Self { authority, folder };
        files.renew(2040);
        std::fs::write(files.folder.join("ca.crt"), files.authority.pem()).unwrap();
        files
    }

    /// Issues a certificate that is valid until the year `until` begins.
    fn issue(&self, until: i32) -> (String, String) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn renew(&self, until: i32) {
        let (certificate, key) = self.issue(until);
        self.write("tls.crt", &certificate);
        self.write("tls.key", &key);
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    fn settings(&self) -> ListenerFiles {
        ListenerFiles {
            setting: "server.tls",
            certificate: self.folder.join("tls.crt"),
            key: self.folder.join("tls.key"),
            client_authority: None,
            client_certificate_optional: false,
        }
    }

    fn open(&self) -> ListenerTls {
        ListenerTls::open(self.settings()).unwrap()
    }

    fn client(&self) -> ClientBuilder {
        let authority = Certificate::from_pem(self.authority.pem().as_bytes()).unwrap();
        Client::builder().tls_certs_only([authority]).no_proxy()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn patient() -> HttpLimits {
    HttpLimits {
        header_timeout: SOON,
        idle_timeout: SOON,
        write_timeout: SOON,
        ..limits()
    }
}

fn serve(tls: ListenerTls, handshakes: usize, within: Duration) -> (u16, HttpServer) {
    let router = Router::new()
        .route("/", get(async || "hello"))
        .route("/large", get(async || "x".repeat(1 << 20)))
        .route("/certificate", get(shown_certificate))
        .route("/scheme", get(scheme));
    let bound = BoundHttp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = bound.address().port();
    let tls = HttpTls::new(tls, TlsPort::Clients, handshakes, within);
    (port, bound.over(Some(tls)).serve(router, &patient()))
}

async fn shown_certificate(request: axum::extract::Request) -> String {
    let shown = connection(&request).peer.certificate;
    shown.map_or_else(|| "none".to_owned(), |shown| format!("{shown:?}"))
}

async fn scheme(request: axum::extract::Request) -> &'static str {
    match connection(&request).peer.over_tls {
        true => "https",
        false => "http",
    }
}

fn connection(request: &axum::extract::Request) -> &Connection {
    request.extensions().get().unwrap()
}

async fn hello(client: &Client, port: u16) -> reqwest::Result<(Version, String)> {
    let answer = client
        .get(format!("https://localhost:{port}/"))
        .send()
        .await?;
    let version = answer.version();
    Ok((version, answer.text().await?))
}

#[tokio::test]
async fn clients_of_both_versions_of_tls_and_of_http_are_served() {
    let files = Files::new();
    let (port, _server) = serve(files.open(), 8, SOON);
    for of_tls in [tls::Version::TLS_1_2, tls::Version::TLS_1_3] {
        let client = || {
            files
                .client()
                .min_tls_version(of_tls)
                .max_tls_version(of_tls)
        };
        for (client, version) in [
            (client().build(), Version::HTTP_2),
            (client().http1_only().build(), Version::HTTP_11),
        ] {
            let client = client.unwrap();
            let answer = hello(&client, port).await.unwrap();
            assert_eq!(answer, (version, "hello".to_owned()));
            let large = client.get(format!("https://localhost:{port}/large"));
            let large = large.send().await.unwrap().bytes().await.unwrap();
            assert_eq!(large.len(), 1 << 20);
            let scheme = client.get(format!("https://localhost:{port}/scheme"));
            let scheme = scheme.send().await.unwrap().text().await.unwrap();
            assert_eq!(scheme, "https");
        }
    }
}

#[tokio::test]
async fn who_comes_without_tls_is_told_so() {
    let files = Files::new();
    let (port, _server) = serve(files.open(), 8, SOON);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(REQUEST).await.unwrap();
    let said = all(&mut stream).await;
    assert!(
        said.starts_with("HTTP/1.1 400 ") && said.contains("use https"),
        "{said}"
    );
}

#[tokio::test]
async fn a_client_shows_a_certificate_where_it_must_and_a_good_one_where_it_may() {
    let (files, other) = (Files::new(), Files::new());
    let identity = |of: &Files, until| {
        let (certificate, key) = of.issue(until);
        Identity::from_pem(format!("{certificate}{key}").as_bytes()).unwrap()
    };
    for optional in [false, true] {
        let settings = ListenerFiles {
            client_authority: Some(files.folder.join("ca.crt")),
            client_certificate_optional: optional,
            ..files.settings()
        };
        let (port, _server) = serve(ListenerTls::open(settings).unwrap(), 8, SOON);
        for (shown, served) in [
            (None, optional),
            (Some(identity(&files, 2040)), true),
            (Some(identity(&files, 2021)), false),
            (Some(identity(&other, 2040)), false),
        ] {
            let client = match shown {
                Some(identity) => files.client().identity(identity),
                None => files.client(),
            };
            let answered = hello(&client.build().unwrap(), port).await;
            assert_eq!(
                answered.is_ok(),
                served,
                "optional: {optional}: {answered:?}"
            );
        }
    }
}

#[tokio::test]
async fn requests_carry_the_certificate_of_their_connection() {
    let files = Files::new();
    let settings = ListenerFiles {
        client_authority: Some(files.folder.join("ca.crt")),
        client_certificate_optional: true,
        ..files.settings()
    };
    let (port, _server) = serve(ListenerTls::open(settings).unwrap(), 8, SOON);
    let (certificate, key) = files.issue(2040);
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let own = format!("{:?}", ClientCertificate::of(&der));
    let identity = Identity::from_pem(format!("{certificate}{key}").as_bytes()).unwrap();
    for (client, shown) in [
        (
            files.client().identity(identity.clone()).http1_only(),
            own.as_str(),
        ),
        (files.client().identity(identity), &own),
        (files.client(), "none"),
    ] {
        let asked = client.build().unwrap();
        let asked = asked.get(format!("https://localhost:{port}/certificate"));
        let told = asked.send().await.unwrap().text().await.unwrap();
        assert_eq!(told, shown);
    }
}

#[tokio::test]
async fn who_says_nothing_takes_no_place_for_handshakes() {
    let files = Files::new();
    let (port, _server) = serve(files.open(), 1, SOON);
    let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    hello(&files.client().build().unwrap(), port).await.unwrap();
}

#[tokio::test]
async fn handshakes_that_do_not_go_on_end_and_others_get_their_turn() {
    let files = Files::new();
    let (port, _server) = serve(files.open(), 1, Duration::from_secs(1));
    let mut silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    silent.write_all(&[0x16]).await.unwrap();
    let client = files.client().build().unwrap();
    // The client may time out while the silent connection has the only permit.
    while hello(&client, port).await.is_err() {}
    let mut rest = Vec::new();
    assert_eq!(silent.read_to_end(&mut rest).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_renewed_certificate_is_taken_and_a_bad_one_is_not() {
    let files = Files::new();
    let tls = Arc::new(files.open());
    tls.renew(Duration::from_millis(20));
    let (port, _server) = serve((*tls).clone(), 8, SOON);
    let kept = files.client().http1_only().build().unwrap();
    hello(&kept, port).await.unwrap();
    let first = tls.validity();

    files.write("tls.key", &KeyPair::generate().unwrap().serialize_pem());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(tls.validity(), first);
    hello(&files.client().build().unwrap(), port).await.unwrap();

    files.renew(2041);
    let renewed = async {
        while tls.validity() == first {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, renewed).await.unwrap();
    hello(&files.client().build().unwrap(), port).await.unwrap();
    hello(&kept, port).await.unwrap();
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let files = Files::new();
    let refused = || ListenerTls::open(files.settings()).unwrap_err().to_string();
    let (certificate, key) = files.issue(2021);
    files.write("tls.crt", &certificate);
    assert!(
        refused().contains("does not belong to the certificate"),
        "{}",
        refused()
    );
    files.write("tls.key", &key);
    assert!(refused().contains("has expired"), "{}", refused());
    files.write("tls.crt", "nothing");
    assert!(refused().contains("holds no certificate"), "{}", refused());
    std::fs::remove_file(files.folder.join("tls.key")).unwrap();
    assert!(
        refused().starts_with("key ") && refused().contains("cannot be read"),
        "{}",
        refused()
    );
    // A self-signed certificate, as simple tools make it, is accepted.
    files.write("tls.crt", &files.authority.pem());
    files.write("tls.key", &files.authority.key().serialize_pem());
    assert!(ListenerTls::open(files.settings()).is_ok());
}
