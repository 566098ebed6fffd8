//! Certificate-bound tokens (RFC 8705).

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose,
    IsCa, KeyPair,
};
use reqwest::{Client, Identity, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use shoal_auth::fixture::{AuthorizationServer, SigningKey};
use shoal_ports::ClientCertificate;
use tempfile::TempDir;

use crate::client::{call, initialize, modern_call, post, post_modern, response, text};
use crate::process::{Server, shoal};

const RESOURCE: &str = "https://mcp.example.com/mcp";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issue(authority: &Authority) -> (Certificate, KeyPair) {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    (certificate, key)
}

fn client(authority: &Authority, shown: Option<&(Certificate, KeyPair)>) -> Client {
    let trusted = reqwest::Certificate::from_pem(authority.pem().as_bytes()).unwrap();
    let mut client = Client::builder().tls_certs_only([trusted]).no_proxy();
    if let Some((certificate, key)) = shown {
        let both = certificate.pem() + &key.serialize_pem();
        client = client.identity(Identity::from_pem(both.as_bytes()).unwrap());
    }
    client.build().unwrap()
}

async fn serve(authority: &Authority, issuer: &AuthorizationServer, files: &Path) -> Server {
    let (certificate, key) = issue(authority);
    let write = |name: &str, text: &str| {
        let path = files.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let any = "127.0.0.1:0";
    let mut command = shoal(&["serve", "--demo", "--admin", any, "--listen", any]);
    command
        .env("SHOAL_SERVER__TLS__KEY", write("key", &key.serialize_pem()))
        .env(
            "SHOAL_SERVER__TLS__CERTIFICATE",
            write("certificate", &certificate.pem()),
        )
        .env(
            "SHOAL_SERVER__TLS__CLIENT_AUTHORITY",
            write("authority", &authority.pem()),
        )
        .env("SHOAL_SERVER__TLS__CLIENT_CERTIFICATE", "optional")
        .env("SHOAL_AUTH__MODE", "oauth")
        .env("SHOAL_AUTH__RESOURCE", RESOURCE)
        .env(
            "SHOAL_AUTH__ISSUERS",
            format!("[{{ issuer = '{}' }}]", issuer.issuer),
        );
    Server::of(command).await
}

async fn send(client: &Client, request: RequestBuilder, token: &str) -> reqwest::Response {
    let request = request.bearer_auth(token).build().unwrap();
    client.execute(request).await.unwrap()
}

#[tokio::test]
async fn a_bound_token_is_good_with_its_certificate_alone_in_both_eras() {
    let files = TempDir::new().unwrap();
    let authority = authority();
    let key = SigningKey::es256("first");
    let issuer = AuthorizationServer::start(&[&key]).await;
    let server = serve(&authority, &issuer, files.path()).await;
    assert!(server.mcp.starts_with("https://"), "{}", server.mcp);

    let own = issue(&authority);
    let shown = ClientCertificate::of(own.0.der());
    let mut claims = issuer.claims(RESOURCE);
    claims["cnf"] = json!({ "x5t#S256": URL_SAFE_NO_PAD.encode(shown.sha256()) });
    let token = key.token(&claims);

    let mine = client(&authority, Some(&own));
    let echo = modern_call(1, "echo", json!({ "text": "modern" }));
    let answer = send(&mine, post_modern(&server.mcp, &echo), &token).await;
    assert_eq!(text(&response(answer).await), "modern");
    let opened = send(
        &mine,
        post(&server.mcp, &initialize(0, "2025-11-25")),
        &token,
    );
    let session = opened.await.headers()["mcp-session-id"].clone();
    let in_session =
        |message: &Value| post(&server.mcp, message).header("mcp-session-id", &session);
    let echo_legacy = call(1, "echo", json!({ "text": "legacy" }));
    let answer = send(&mine, in_session(&echo_legacy), &token).await;
    assert_eq!(text(&response(answer).await), "legacy");

    // A thief of the token does not have the certificate's key.
    let other = issue(&authority);
    for thief in [client(&authority, Some(&other)), client(&authority, None)] {
        for request in [post_modern(&server.mcp, &echo), in_session(&echo_legacy)] {
            let refused = send(&thief, request, &token).await;
            assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
            let told = refused.headers()["www-authenticate"].to_str().unwrap();
            assert!(told.contains("error=\"invalid_token\""), "{told}");
        }
    }
}
