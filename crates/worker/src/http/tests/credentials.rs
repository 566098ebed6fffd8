use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{CallOutcome, Secret};

use super::harness::{Client, TestBackend, error, scratch, text};
use super::server::{Server, started};
use crate::{ClientAuthentication, ClientCredentialsConfig, HttpConfig};

const PROTECTED: [&str; 1] = ["--protected"];

fn with_secret(server: &Server) -> HttpConfig {
    HttpConfig {
        client_credentials: ClientCredentialsConfig {
            client_id: "shoal".to_owned(),
            client_secret: Some(Secret::new("open sesame")),
            ..ClientCredentialsConfig::default()
        },
        ..server.config()
    }
}

async fn echo(running: &TestBackend) -> CallOutcome {
    running
        .call(&Client::named("a"), "echo", json!({ "text": "x" }))
        .await
}

async fn grants(server: &Server) -> Vec<Value> {
    let seen = server.seen().await;
    seen["grants"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_server_that_answers_401_gets_a_token_of_shoals_own() {
    for era in ["legacy", "modern"] {
        let server = Server::start(&["--protected", "--era", era]).await;
        let running = server.backend_of(with_secret(&server)).await;
        assert_eq!(text(&echo(&running).await), "x");
        assert_eq!(
            grants(&server).await,
            [json!({
                "grant_type": "client_credentials",
                "resource": server.url,
                "scope": "use",
                // The header encodes `shoal:open+sesame`.
                "authorization": "Basic c2hvYWw6b3BlbitzZXNhbWU=",
            })]
        );
        assert_eq!(server.seen().await["unauthorized"], 1);
    }
}

#[tokio::test]
async fn one_token_is_requested_however_many_requests_are_refused() {
    let server = Server::start(&["--protected", "--stateless"]).await;
    let running = server.backend_of(with_secret(&server)).await;
    running.catalog_where(|_| true).await;
    server
        .order(json!({ "revoke": true, "grants_after": 0.3 }))
        .await;
    let calls = (0..8).map(|_| echo(&running));
    for outcome in futures::future::join_all(calls).await {
        assert_eq!(text(&outcome), "x");
    }
    assert_eq!(grants(&server).await.len(), 2);
    assert_eq!(server.seen().await["runs"]["echo"], 8);
}

#[tokio::test]
async fn a_token_is_replaced_before_it_expires() {
    let server = Server::start(&PROTECTED).await;
    server.order(json!({ "life": 1 })).await;
    let running = server.backend_of(with_secret(&server)).await;
    let more = |seen: &Value| seen["grants"].as_array().is_some_and(|all| all.len() > 2);
    server.seen_where("more tokens, for pings", more).await;
    assert_eq!(text(&echo(&running).await), "x");
    assert_eq!(server.seen().await["unauthorized"], 1);
}

#[tokio::test]
async fn a_call_is_repeated_only_after_a_challenge() {
    let server = Server::start(&PROTECTED).await;
    let mut config = with_secret(&server);
    config.health_interval = Duration::from_secs(60).into();
    config.client_credentials.token_endpoint = server.url.replace("/mcp", "/token");
    let running = server.backend_of(config).await;
    assert_eq!(text(&echo(&running).await), "x");
    server.order(json!({ "revoke": true, "bare": true })).await;
    let told = error(echo(&running).await).message;
    assert!(told.contains("credentials"), "{told}");
    assert_eq!(text(&echo(&running).await), "x");
    assert_eq!(server.seen().await["runs"]["echo"], 2);
}

#[tokio::test]
async fn a_server_that_takes_no_token_is_not_sent_one_after_the_other() {
    let server = Server::start(&PROTECTED).await;
    server.order(json!({ "grants": false })).await;
    let backend = started(with_secret(&server));
    let refused = |seen: &Value| seen["unauthorized"].as_u64() >= Some(10);
    server.seen_where("many attempts", refused).await;
    assert!(grants(&server).await.len() <= 2);
    drop(backend);
}

#[tokio::test]
async fn a_key_signs_instead_of_a_secret() {
    let server = Server::start(&PROTECTED).await;
    let key = scratch("key");
    let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
    std::fs::write(&*key, pem).unwrap();
    let mut config = with_secret(&server);
    config.client_credentials.client_secret = None;
    config.client_credentials.private_key_file = Some(key.to_path_buf());
    let running = server.backend_of(config).await;
    assert_eq!(text(&echo(&running).await), "x");
    let grant = &grants(&server).await[0];
    assert_eq!(grant["authorization"], Value::Null);
    let assertion = grant["client_assertion"].as_str().unwrap();
    let claims = assertion.split('.').nth(1).unwrap();
    use base64::Engine as _;
    let claims = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(claims);
    let claims: Value = serde_json::from_slice(&claims.unwrap()).unwrap();
    let issuer = server.url.replace("/mcp", "");
    assert_eq!(claims["aud"], issuer);
    assert_eq!(
        (&claims["iss"], &claims["sub"]),
        (&"shoal".into(), &"shoal".into())
    );
}

async fn troubled(config: HttpConfig, why: &str) {
    let backend = started(config);
    let mut state = crate::Backend::state(&backend);
    let told = tokio::time::timeout(
        Duration::from_secs(20),
        state.wait_for(|state| state.detail.as_ref().is_some_and(|told| told.contains(why))),
    );
    let told = told.await.map(drop);
    assert!(told.is_ok(), "{why}: {:?}", state.borrow().detail);
}

#[tokio::test]
async fn secrets_go_only_where_the_server_may_send_them() {
    for (order, why) in [
        (json!({ "issuer": "http://127.0.0.1:9" }), "outbound.allow"),
        (
            json!({ "issuer": "http://169.254.169.254" }),
            "outbound.allow",
        ),
        (
            json!({ "resource": "https://other.example.com/mcp" }),
            "of another server",
        ),
        (
            json!({ "metadata": { "issuer": "https://x.example.com" } }),
            "of another issuer",
        ),
        (
            json!({ "metadata": { "token_endpoint_auth_methods_supported": ["private_key_jwt"] } }),
            "takes no client secret",
        ),
    ] {
        let server = Server::start(&PROTECTED).await;
        server.order(order).await;
        troubled(with_secret(&server), why).await;
        assert!(grants(&server).await.is_empty());
    }
}

#[tokio::test]
async fn what_the_token_endpoint_says_is_told_without_the_secret() {
    let server = Server::start(&PROTECTED).await;
    let body = json!({ "error": "invalid_client", "error_description": "not open sesame" });
    let refusal = json!({ "status": 401, "body": body });
    server.order(json!({ "refusal": refusal })).await;
    let mut config = with_secret(&server);
    config.client_credentials.authentication = ClientAuthentication::Post;
    troubled(config, "invalid_client: not (the secret)").await;
}

#[test]
fn what_cannot_be_is_told_before_anything_starts() {
    let refused = |change: &dyn Fn(&mut HttpConfig)| {
        let mut config = HttpConfig::new("http://localhost/mcp");
        config.client_credentials.client_id = "shoal".to_owned();
        config.client_credentials.client_secret = Some(Secret::new("x"));
        config.check().unwrap();
        change(&mut config);
        config.check().unwrap_err()
    };
    let own = |change: &dyn Fn(&mut ClientCredentialsConfig)| {
        let (setting, why) = refused(&|config| change(&mut config.client_credentials));
        assert_eq!(setting, "client_credentials");
        why
    };
    assert!(own(&|own| own.client_id = String::new()).contains("client_id"));
    assert!(own(&|own| own.client_secret = None).contains("give one"));
    assert!(own(&|own| own.private_key_file = Some("key".into())).contains("give one"));
    assert!(own(&|own| own.key_id = "one".to_owned()).contains("private_key_file"));
    assert!(own(&|own| own.issuer = "id".to_owned()).contains("authorization server"));
    let both = |config: &mut HttpConfig| {
        let header = ("Authorization".to_owned(), Secret::new("Bearer x"));
        config.headers.extend([header]);
    };
    assert_eq!(refused(&both).0, "headers");
}
