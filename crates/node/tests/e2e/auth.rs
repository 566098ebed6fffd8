//! Who may call, over the wire.

use serde_json::json;

use crate::client::{Session, call, initialize, modern_call, post, post_modern, response, text};
use crate::command::output;
use crate::process::Server;

/// A server that knows Alice and Bob by tokens hashed with `shoal config hash-token`.
async fn server() -> Server {
    let hash = async |token: &str| {
        let hashed = output(&["config", "hash-token"], token).await;
        hashed.stdout.trim().to_owned()
    };
    let (alice, bob) = (hash("alice's token\n").await, hash("bob's token").await);
    let tokens =
        format!("[{{ name = 'alice', sha256 = '{alice}' }}, {{ name = 'bob', sha256 = '{bob}' }}]");
    let environment = [
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS", tokens.as_str()),
    ];
    Server::start_with(&["--demo"], &environment).await
}

#[tokio::test]
async fn nobody_calls_without_a_token() {
    let server = server().await;
    let echo = modern_call(1, "echo", json!({ "text": "hello" }));
    for request in [
        post(&server.mcp, &initialize(0, "2025-11-25")),
        post_modern(&server.mcp, &echo),
        post_modern(&server.mcp, &echo).bearer_auth("guess"),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 401);
        assert!(answer.headers().contains_key("www-authenticate"));
    }
    let answer = post_modern(&server.mcp, &echo).bearer_auth("alice's token");
    let answer = response(answer.send().await.unwrap()).await;
    assert_eq!(text(&answer), "hello");
}

#[tokio::test]
async fn a_session_is_its_principals_alone() {
    let server = server().await;
    let alice = Session::open_as(&server.mcp, Some("alice's token")).await;
    let bob = Session::open_as(&server.mcp, Some("bob's token")).await;
    let echo = call(1, "echo", json!({ "text": "mine" }));
    assert_eq!(text(&alice.ask(&echo).await), "mine");
    let stolen = post(&server.mcp, &echo)
        .header("mcp-session-id", &alice.id)
        .header("mcp-protocol-version", "2025-11-25");
    let answer = stolen.bearer_auth("bob's token").send().await.unwrap();
    assert_eq!(answer.status(), 404);
    assert_eq!(text(&bob.ask(&echo).await), "mine");
    assert_eq!(text(&alice.ask(&echo).await), "mine");
}

#[tokio::test]
async fn the_command_line_calls_with_a_token() {
    let server = server().await;
    let echo = ["call", "--url", &server.mcp, "echo", r#"{"text":"mine"}"#];
    let refused = output(&echo, "").await;
    assert_eq!(refused.code, 5);
    assert!(refused.stderr.contains("SHOAL_TOKEN"), "{}", refused.stderr);
    for era in ["modern", "legacy"] {
        let token = ["--token", "alice's token", "--era", era];
        let called = output(&[&echo[..], &token].concat(), "").await;
        assert_eq!(called.stdout, "mine\n", "{era}: {}", called.stderr);
    }
}
