use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use shoal_auth::{StaticTokens, TokenHash};
use shoal_ports::Principal;

use crate::server::{Server, header, rpc};

#[tokio::test]
async fn a_preflight_is_answered_and_a_foreign_page_reads_why_it_is_refused() {
    let server = Server::with(|config| {
        config.endpoint.allowed_origins = vec!["https://app.example.com".into()];
    })
    .await;
    let ask = |origin: &'static str| {
        server
            .request(Method::OPTIONS, "/mcp")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header(
                "access-control-request-headers",
                "content-type, mcp-param-region",
            )
            .send()
    };
    let allowed = ask("https://app.example.com").await.unwrap();
    assert_eq!(allowed.status(), 204);
    let origin = header(&allowed, "access-control-allow-origin");
    assert_eq!(origin, "https://app.example.com");
    let headers = header(&allowed, "access-control-allow-headers");
    assert_eq!(headers, "content-type, mcp-param-region");
    assert!(header(&allowed, "access-control-allow-methods").contains("DELETE"));

    let evil = "https://evil.example.com";
    let foreign = ask(evil).await.unwrap();
    assert_eq!(foreign.status(), 204);
    assert_eq!(header(&foreign, "access-control-allow-origin"), evil);
    let body = rpc("ping", &json!({})).to_string();
    let refused = server.post(body).header("origin", evil);
    let refused = refused.send().await.unwrap();
    assert_eq!(refused.status(), 403);
    assert_eq!(header(&refused, "access-control-allow-origin"), evil);
    assert!(refused.text().await.unwrap().contains("may not call"));
    assert!(server.gateway.delivered.lock().is_empty());
}

#[tokio::test]
async fn a_page_may_read_the_session_id() {
    let server = Server::start().await;
    let body = rpc("initialize", &json!({"protocolVersion": "2025-11-25"}));
    let answer = server
        .post(body.to_string())
        .header("origin", "http://localhost:6274")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let exposed = header(&answer, "access-control-expose-headers");
    assert!(exposed.contains("Mcp-Session-Id"), "{exposed}");
    let origin = header(&answer, "access-control-allow-origin");
    assert_eq!(origin, "http://localhost:6274");
    assert_eq!(header(&answer, "vary"), "Origin");
}

#[tokio::test]
async fn a_token_names_the_principal_of_a_call() {
    let tokens = StaticTokens::new([(TokenHash::of("secret"), Principal::new("alice"))]);
    let server = Server::with_authenticator(Arc::new(tokens), |_| {}).await;
    let call = server.tool("echo").header("authorization", "bearer secret");
    assert_eq!(call.send().await.unwrap().status(), 200);
    let calls = server.dispatcher.calls.lock();
    assert_eq!(calls[0].caller.principal.as_str(), "alice");
}

#[tokio::test]
async fn wildcards_are_accepted() {
    let server = Server::start().await;
    let answer = server
        .modern("tools/list", json!({}))
        .header("accept", "*/*");
    assert_eq!(answer.send().await.unwrap().status(), 200);
}
