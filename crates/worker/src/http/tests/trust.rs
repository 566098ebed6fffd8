use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use serde_json::json;

use super::harness::{Client, Scratch, TestBackend, error, scratch, text};
use super::server::{Server, started};
use crate::HttpTls;

struct Files(Scratch);

impl Files {
    fn new() -> Self {
        let directory = scratch("certificates");
        std::fs::create_dir(&*directory).unwrap();
        let files = Self(directory);
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let named = DnType::CommonName;
        authority.distinguished_name.push(named, "an authority");
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap());
        let issuer = issuer.unwrap();
        std::fs::write(files.path("authority"), issuer.pem()).unwrap();
        for (name, usage) in [
            ("server", ExtendedKeyUsagePurpose::ServerAuth),
            ("client", ExtendedKeyUsagePurpose::ClientAuth),
        ] {
            let mut leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
            leaf.distinguished_name.push(DnType::CommonName, name);
            leaf.extended_key_usages = vec![usage];
            let key = KeyPair::generate().unwrap();
            let signed = leaf.signed_by(&key, &issuer).unwrap();
            std::fs::write(files.path(name), signed.pem()).unwrap();
            std::fs::write(files.path(&format!("{name}-key")), key.serialize_pem()).unwrap();
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.pem"))
    }

    fn flag(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_private_authority_and_a_certificate_of_ones_own() {
    let files = Files::new();
    let flags = [
        ("--certificate", "server"),
        ("--key", "server-key"),
        ("--authority", "authority"),
    ];
    let flags = flags.map(|(flag, name)| [flag.to_owned(), files.flag(name)]);
    let server = Server::start_of(flags.concat()).await;
    let tls = HttpTls {
        authority: Some(files.path("authority")),
        certificate: Some(files.path("client")),
        key: Some(files.path("client-key")),
    };
    let mut config = server.config();
    config.tls = tls.clone();
    let running = server.backend_of(config.clone()).await;
    let client = Client::named("a");
    let outcome = running
        .call(&client, "echo", json!({ "text": "safe" }))
        .await;
    assert_eq!(text(&outcome), "safe");

    let anonymous = HttpTls {
        certificate: None,
        key: None,
        ..tls.clone()
    };
    let missing = HttpTls {
        authority: Some("/does/not/exist.pem".into()),
        ..tls
    };
    for (tls, told) in [
        (HttpTls::default(), "reached"),
        (anonymous, ""),
        (missing, "/does/not/exist.pem"),
    ] {
        config.tls = tls;
        let backend = started(config.clone());
        let running = TestBackend(std::sync::Arc::new(backend));
        let says = |detail: &String| detail.starts_with("restarting") && detail.contains(told);
        let state = running.state_where(|state| state.detail.as_ref().is_some_and(says));
        assert!(state.await.catalog.is_none());
    }
}

#[tokio::test]
async fn a_redirect_is_followed_within_the_origin_only() {
    let server = Server::start(&[]).await;
    let other = Server::start(&[]).await;
    let running = server.backend().await;
    let client = Client::named("a");
    let redirect = async |status: u16, to: &str| {
        let arguments = json!({ "status": status, "to": to });
        error(running.call(&client, "redirect", arguments).await).message
    };
    let elsewhere = format!("{}?token=secret", other.url);
    for status in [301, 302, 307, 308] {
        let told = redirect(status, &elsewhere).await;
        let wanted = format!("redirect to {}: set url to it", other.url);
        assert!(told.contains(&wanted), "{told}");
    }
    let here = format!("redirect to {}: set url to it", server.url);
    assert!(redirect(302, "/mcp").await.contains(&here));
    assert!(redirect(307, "/mcp").await.contains(&here));
    let seen = server.seen().await;
    assert_eq!(seen["runs"]["redirect"], 5 + 4);
    assert_eq!(other.seen().await["headers"], json!({}));
}

#[tokio::test]
async fn headers_of_a_file_follow_it() {
    let server = Server::start(&["--json"]).await;
    let file = scratch("headers");
    std::fs::write(&*file, "authorization: Bearer one").unwrap();
    let mut config = server.config();
    config.headers_file = Some(file.to_path_buf());
    let running = server.backend_of(config).await;
    let client = Client::named("a");
    let sent = async || {
        running.call(&client, "echo", json!({ "text": "x" })).await;
        server.seen().await["headers"]["tools/call"]["authorization"].clone()
    };
    assert_eq!(sent().await, "Bearer one");
    std::fs::write(&*file, "authorization: Bearer two").unwrap();
    let changed = async {
        while sent().await != "Bearer two" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let changed = tokio::time::timeout(std::time::Duration::from_secs(20), changed);
    changed.await.expect("the file was read again");
}
