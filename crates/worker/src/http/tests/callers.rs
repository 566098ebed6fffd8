use std::sync::Arc;

use serde_json::{Value, json};
use shoal_ports::{CallFailure, Secret};
use shoal_protocol::code;

use super::harness::{Client, TestBackend, error, failure, scratch, text};
use super::server::Server;
use crate::{CallersWithoutToken, HttpConfig, HttpIsolation, TokenExchangeConfig};

async fn seen(server: &Server, method: &str) -> Value {
    server.seen().await["headers"][method].clone()
}

#[tokio::test]
async fn headers_of_callers_are_passed_on_where_they_are_named() {
    for era in ["legacy", "modern"] {
        let server = Server::start(&["--era", era]).await;
        let mut config = server.config();
        let own = ("Authorization".to_owned(), Secret::new("Bearer shoal"));
        config.headers.extend([own]);
        config.forward = ["Authorization", "X-Team"].map(str::to_owned).to_vec();
        let running = server.backend_of(config).await;
        let catalog = running.catalog_where(|_| true).await;
        assert_eq!(
            catalog.headers,
            ["authorization", "x-team"].map(Arc::<str>::from)
        );
        let brings = [
            ("authorization", "Bearer a"),
            ("x-team", "blue"),
            ("x-other", "no"),
        ];
        let client = Client::named("a").bringing(&brings);
        let arguments = json!({ "text": "x" });
        let outcome = running.call(&client, "echo", arguments.clone()).await;
        assert_eq!(text(&outcome), "x");
        let call = seen(&server, "tools/call").await;
        assert_eq!(call["authorization"], "Bearer a");
        assert_eq!(call["x-team"], "blue");
        assert_eq!(call["x-other"], Value::Null);
        // Shoal reads lists in its own name, and opens a caller's legacy session in the caller's.
        let list = seen(&server, "tools/list").await;
        assert_eq!(list["authorization"], "Bearer shoal");
        if era == "legacy" {
            let opening = seen(&server, "initialize").await;
            assert_eq!(opening["authorization"], "Bearer a");
        }
        let other = Client::named("b");
        let refused = running.call(&other, "echo", arguments).await;
        let told = error(refused).message;
        assert!(told.contains("send Authorization"), "{told}");
        assert_eq!(server.seen().await["runs"]["echo"], 1);
    }
}

#[tokio::test]
async fn callers_without_a_token_get_shoals_where_the_operator_says_so() {
    let server = Server::start(&[]).await;
    let mut config = server.config();
    let own = ("Authorization".to_owned(), Secret::new("Bearer shoal"));
    config.headers.extend([own]);
    config.forward = vec!["Authorization".to_owned()];
    config.callers_without_token = CallersWithoutToken::Service;
    let running = server.backend_of(config).await;
    let client = Client::named("b");
    let outcome = running.call(&client, "echo", json!({ "text": "x" })).await;
    assert_eq!(text(&outcome), "x");
    let call = seen(&server, "tools/call").await;
    assert_eq!(call["authorization"], "Bearer shoal");
}

/// The server may bind a session to the caller that opened it.
#[tokio::test]
async fn callers_that_bring_different_headers_share_no_session() {
    let server = Server::start(&[]).await;
    let mut config = server.config();
    config.forward = vec!["Authorization".to_owned()];
    config.isolation = HttpIsolation::Principal;
    let running = server.backend_of(config).await;
    let session = async |name: &str, token: &str| {
        let client = Client::modern(name, "{}").of("one");
        let client = client.bringing(&[("authorization", token)]);
        text(&running.call(&client, "session", json!({})).await)
    };
    let first = session("a", "Bearer a").await;
    assert_ne!(session("b", "Bearer b").await, first);
    assert_eq!(session("c", "Bearer a").await, first);
}

async fn cookies(running: &TestBackend, client: &Client, sets: &str) -> Value {
    let arguments = json!({ "sets": sets });
    text(&running.call(client, "cookies", arguments).await)
}

#[tokio::test]
async fn sessions_and_principals_share_no_cookies() {
    for isolation in [HttpIsolation::Session, HttpIsolation::Principal] {
        let server = Server::start(&["--cookies"]).await;
        let mut config = server.config();
        config.isolation = isolation;
        let running = server.backend_of(config).await;
        let (a, b) = (Client::named("a"), Client::named("b"));
        for brought in [json!(["other"]), json!(["a", "other"])] {
            assert_eq!(cookies(&running, &a, "a").await, brought);
        }
        for brought in [json!(["other"]), json!(["b", "other"])] {
            assert_eq!(cookies(&running, &b, "b").await, brought);
        }
        assert_eq!(cookies(&running, &a, "a").await, json!(["a", "other"]));
        let second = Client::named("second").of("a");
        let brought = match isolation {
            HttpIsolation::Session => json!(["other"]),
            HttpIsolation::Principal => json!(["a", "other"]),
        };
        assert_eq!(cookies(&running, &second, "second").await, brought);
    }
}

#[tokio::test]
async fn calls_over_a_connection_that_callers_share_bring_and_set_no_cookies() {
    for flags in [["--cookies", "--era=modern"], ["--cookies", "--stateless"]] {
        let server = Server::start(&flags).await;
        let running = server.backend().await;
        running.catalog_where(|_| true).await;
        assert_eq!(seen(&server, "tools/list").await["cookie"], "other=1");
        for name in ["a", "b", "a"] {
            let brought = cookies(&running, &Client::named(name), name).await;
            assert_eq!(brought, json!([]), "{flags:?}");
        }
    }
}

fn client(name: &str, token: Option<&str>) -> Client {
    let header = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = header
        .iter()
        .map(|header| ("authorization", &**header))
        .collect();
    Client::named(name).bringing(&headers)
}

/// Exchanges tokens at the server, which is also the token endpoint.
fn trading(server: &Server) -> HttpConfig {
    let exchange = TokenExchangeConfig {
        endpoint: server.url.replace("/mcp", "/token"),
        client_id: "shoal".to_owned(),
        audience: "the server".to_owned(),
        ..TokenExchangeConfig::default()
    };
    HttpConfig {
        token_exchange: exchange,
        ..server.config()
    }
}

#[tokio::test]
async fn a_callers_token_is_traded_for_one_that_the_server_takes() {
    for era in ["legacy", "modern"] {
        let server = Server::start(&["--era", era]).await;
        let secret = scratch("secret");
        std::fs::write(&*secret, "p&ss\n").unwrap();
        let mut config = trading(&server);
        let exchange = &mut config.token_exchange;
        exchange.client_secret_file = Some(secret.to_path_buf());
        let running = server.backend_of(config).await;
        let called = async |client: &Client| {
            let outcome = running.call(client, "echo", json!({ "text": "x" })).await;
            assert_eq!(text(&outcome), "x");
            seen(&server, "tools/call").await["authorization"].clone()
        };
        let (first, other) = (client("a", Some("one")), client("b", Some("two")));
        assert_eq!(called(&first).await, "Bearer 1 for one");
        let asked = server.seen().await["exchange"].clone();
        assert_eq!(
            asked,
            json!({
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "subject_token": "one",
                "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "audience": "the server",
                // The header encodes `shoal:p%26ss`.
                "authorization": "Basic c2hvYWw6cCUyNnNz",
            })
        );
        assert_eq!(called(&other).await, "Bearer 2 for two");
        assert_eq!(called(&first).await, "Bearer 1 for one");
        assert_eq!(
            called(&client("a", Some("three"))).await,
            "Bearer 3 for three"
        );
        let list = seen(&server, "tools/list").await;
        assert_eq!(list["authorization"], Value::Null);
    }
}

#[tokio::test]
async fn a_call_without_a_token_for_the_server_is_told_why() {
    let server = Server::start(&[]).await;
    let running = server.backend_of(trading(&server)).await;
    let echo = async |client: Client| running.call(&client, "echo", json!({ "text": "x" })).await;
    let told = error(echo(client("a", None)).await).message;
    assert!(told.contains("Authorization: Bearer"), "{told}");
    let body = json!({ "error": "invalid_grant", "error_description": "one has expired" });
    let refusal = json!({ "status": 400, "body": body });
    server.order(json!({ "refusal": refusal })).await;
    let told = error(echo(client("a", Some("one"))).await).message;
    assert!(
        told.contains("invalid_grant: (the token) has expired"),
        "{told}"
    );
    let refusal = json!({ "status": 503, "body": {} });
    server.order(json!({ "refusal": refusal })).await;
    let CallFailure::Overloaded { reason, .. } = failure(echo(client("a", Some("two"))).await)
    else {
        panic!("it may have run");
    };
    assert!(reason.contains("503"), "{reason}");
    assert_eq!(server.seen().await["runs"], json!({}));
    server.order(json!({ "refusal": null })).await;
    assert_eq!(text(&echo(client("a", Some("three"))).await), "x");
}

#[tokio::test]
async fn a_traded_token_that_the_server_does_not_take_is_traded_anew() {
    let server = Server::start(&[]).await;
    let running = server.backend_of(trading(&server)).await;
    let client = client("a", Some("one"));
    let echo = async || running.call(&client, "echo", json!({ "text": "x" })).await;
    assert_eq!(text(&echo().await), "x");
    server.order(json!({ "status": 401 })).await;
    assert!(error(echo().await).message.contains("credentials"));
    server.order(json!({ "status": null })).await;
    assert_eq!(text(&echo().await), "x");
    let call = seen(&server, "tools/call").await;
    assert_ne!(call["authorization"], "Bearer 1 for one");
}

/// Shoal does not repeat a refused request, because the server would refuse the same token again.
#[tokio::test]
async fn a_caller_whose_token_is_refused_is_told_so() {
    for status in [401, 403] {
        let server = Server::start(&[]).await;
        let mut config = server.config();
        config.forward = vec!["Authorization".to_owned()];
        let running = server.backend_of(config).await;
        let bad = client("a", Some("bad"));
        server.order(json!({ "status": status })).await;
        let refused = error(running.call(&bad, "echo", json!({ "text": "x" })).await);
        assert_eq!(refused.code, code::INTERNAL_ERROR);
        assert!(
            refused.message.contains("the caller"),
            "{}",
            refused.message
        );
        server.order(json!({ "status": null })).await;
        let good = client("b", Some("good"));
        let outcome = running.call(&good, "echo", json!({ "text": "x" })).await;
        assert_eq!(text(&outcome), "x");
    }
}

/// The server's words may quote the operator's key, so callers must not read them.
#[tokio::test]
async fn words_about_the_operators_credentials_are_for_the_operator() {
    for (header, token, is_kept_back) in [
        ("X-Key", Some("bad"), true),
        ("X-Key", None, true),
        ("Authorization", None, true),
        // The caller's header replaces the operator's.
        ("Authorization", Some("bad"), false),
    ] {
        let server = Server::start(&[]).await;
        let mut config = server.config();
        let own = (header.to_owned(), Secret::new("abc"));
        config.headers.extend([own]);
        config.forward = vec!["Authorization".to_owned()];
        config.callers_without_token = CallersWithoutToken::Service;
        let running = server.backend_of(config).await;
        for status in [401, 403] {
            let refusal = json!({ "status": status, "said": "abc has expired" });
            server.order(refusal).await;
            let caller = client("a", token);
            let refused = error(running.call(&caller, "echo", json!({ "text": "x" })).await);
            let whose = if token.is_some() { "caller" } else { "Shoal" };
            assert!(refused.message.contains(whose), "{}", refused.message);
            let told = refused.message.contains("abc");
            assert_eq!(
                told, !is_kept_back,
                "{header} {token:?}: {}",
                refused.message
            );
            server.order(json!({ "status": null })).await;
        }
    }
}

#[tokio::test]
async fn a_secret_that_the_token_endpoint_repeats_is_hidden() {
    let server = Server::start(&[]).await;
    let secret = scratch("secret");
    std::fs::write(&*secret, "open sesame\n").unwrap();
    let mut config = trading(&server);
    config.token_exchange.client_secret_file = Some(secret.to_path_buf());
    let running = server.backend_of(config).await;
    let body = json!({ "error": "invalid_client", "error_description": "not open sesame" });
    let refusal = json!({ "status": 401, "body": body });
    server.order(json!({ "refusal": refusal })).await;
    let caller = client("a", Some("one"));
    let refused = running.call(&caller, "echo", json!({ "text": "x" })).await;
    let told = error(refused).message;
    assert!(told.contains("invalid_client: not (the secret)"), "{told}");
}

#[test]
fn what_cannot_be_is_told_before_anything_starts() {
    let refused = |change: &dyn Fn(&mut HttpConfig)| {
        let mut config = HttpConfig::new("http://localhost/mcp");
        config.token_exchange.endpoint = "https://localhost/token".to_owned();
        config.check().unwrap();
        change(&mut config);
        config.check().unwrap_err().0
    };
    let endpoint = |config: &mut HttpConfig| {
        config.token_exchange.endpoint = "token".to_owned();
    };
    assert_eq!(refused(&endpoint), "token_exchange");
    let nowhere = |config: &mut HttpConfig| {
        config.token_exchange = TokenExchangeConfig {
            audience: "the server".to_owned(),
            ..TokenExchangeConfig::default()
        };
    };
    assert_eq!(refused(&nowhere), "token_exchange");
    let both = |config: &mut HttpConfig| config.forward = vec!["Authorization".to_owned()];
    assert_eq!(refused(&both), "forward");
    let unnamed = |config: &mut HttpConfig| config.forward = vec!["a b".to_owned()];
    assert_eq!(refused(&unnamed), "forward");
}
