use serde_json::{Value, json};
use shoal_ports::Secret;

use super::harness::{Client, Scratch, TestBackend, scratch};
use super::service::{Petstore, result, told};
use crate::{CallersWithoutToken, CredentialConfig, OpenApiBackend, ToolChoice};
use shoal_outbound::Outbound;

fn secret(value: &str) -> CredentialConfig {
    CredentialConfig {
        secret: Some(Secret::new(value)),
        ..CredentialConfig::default()
    }
}

#[tokio::test]
async fn the_first_alternative_that_is_configured_is_taken() {
    let service = Petstore::start().await;
    let client = Client::named("a");
    let file: Scratch = scratch("token");
    std::fs::write(&*file, "from a file\n").unwrap();
    let basic = CredentialConfig {
        username: "me".to_owned(),
        ..secret("pass")
    };
    let bearer = CredentialConfig {
        secret_file: Some(file.to_path_buf()),
        ..CredentialConfig::default()
    };
    for (given, query, header, cookie) in [
        (
            vec![("query_key", secret("a&b")), ("basic", basic)],
            "key=a%26b",
            json!("Basic bWU6cGFzcw=="),
            Value::Null,
        ),
        (
            vec![("bearer", bearer)],
            "",
            json!("Bearer from a file"),
            Value::Null,
        ),
        (
            vec![("cookie_key", secret("c"))],
            "",
            Value::Null,
            json!("key=c"),
        ),
    ] {
        let mut config = service.config();
        config.security = given
            .into_iter()
            .map(|(name, it)| (name.to_owned(), it))
            .collect();
        let running = service.backend_of(config).await;
        // The caller's argument `key` must not replace the credential.
        let mine = if query.is_empty() {
            json!({})
        } else {
            json!({ "key": "mine" })
        };
        result(running.call(&client, "secret", mine).await);
        let last = &service.seen().await["last"];
        assert_eq!(last["query"], query);
        assert_eq!(
            (
                &last["headers"]["authorization"],
                &last["headers"]["cookie"]
            ),
            (&header, &cookie)
        );
    }
}

/// The service's words may quote the operator's key.
#[tokio::test]
async fn words_about_the_operators_credentials_are_for_the_operator() {
    let service = Petstore::start().await;
    let mut config = service.config();
    config.forward = vec!["authorization".to_owned()];
    config.callers_without_token = CallersWithoutToken::Service;
    let (client, token) = (Client::named("a"), [("authorization", "Bearer a")]);
    let callers = Client::named("b").bringing(&token);
    for (own, goes_with_callers) in [
        (None, false),
        // The caller's header replaces the operator's.
        (Some("Authorization"), false),
        (Some("X-Key"), true),
    ] {
        config.headers = (own.into_iter())
            .map(|name| (name.to_owned(), Secret::new("operator")))
            .collect();
        let running = service.backend_of(config.clone()).await;
        for (client, is_kept_back) in [(&client, own.is_some()), (&callers, goes_with_callers)] {
            let refused = running.call(client, "status", json!({ "code": 401 })).await;
            let told = told(refused);
            assert!(told.starts_with("401 Unauthorized: the service does not accept"));
            assert_eq!(told.contains("as asked"), !is_kept_back, "{told}");
        }
    }
}

#[tokio::test]
async fn headers_of_the_operator_and_of_clients_go_along() {
    let service = Petstore::start().await;
    let mut config = service.config();
    config
        .headers
        .insert("X-Request-Tag".into(), Secret::new("operator"));
    config.forward = vec!["x-team".to_owned()];
    let running = service.backend_of(config).await;
    let client = Client::named("a").bringing(&[("x-team", "blue"), ("x-other", "no")]);
    let mine = json!({ "X-Request-Tag": "mine" });
    result(running.call(&client, "listPets", mine).await);
    let headers = &service.seen().await["last"]["headers"];
    assert_eq!(
        (&headers["x-request-tag"], &headers["x-team"]),
        (&json!("operator"), &json!("blue"))
    );
    assert_eq!(headers["x-other"], Value::Null);
}

#[tokio::test]
async fn credentials_go_only_where_the_operator_says() {
    let (monitor, other) = (Petstore::start().await, scratch("elsewhere.json"));
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "servers": [{ "url": "http://elsewhere.invalid/v1" }],
        "paths": { "/a": { "get": { "responses": {} } } },
    });
    std::fs::write(&*other, document.to_string()).unwrap();
    let mut config = monitor.config();
    config.security.insert("nobody".to_owned(), secret("x"));
    let backend =
        OpenApiBackend::start(config, ToolChoice::default(), None, &Outbound::default()).unwrap();
    let running = TestBackend(std::sync::Arc::new(backend));
    let told = |part: &'static str| {
        move |state: &crate::BackendState| {
            state
                .detail
                .as_ref()
                .is_some_and(|detail| detail.contains(part))
        }
    };
    let state = running.state_where(told("no such security scheme")).await;
    assert!(state.catalog.is_none() && state.detail.unwrap().starts_with("cannot start: "));
    let mut config = monitor.config();
    config.document = other.to_str().unwrap().to_owned();
    config.headers.insert("x-key".into(), Secret::new("x"));
    let backend =
        OpenApiBackend::start(config, ToolChoice::default(), None, &Outbound::default()).unwrap();
    let running = TestBackend(std::sync::Arc::new(backend));
    running.state_where(told("cannot be reached")).await;
}
