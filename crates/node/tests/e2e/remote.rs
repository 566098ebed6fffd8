use nix::sys::signal::Signal;
use serde_json::json;

use crate::client::{call, initialize, initialized, modern, modern_call, text};
use crate::process::{Bridge, Server};

async fn open(bridge: &mut Bridge) {
    bridge.send(initialize(0, "2025-11-25")).await;
    let opened = bridge.response(0).await;
    assert_eq!(
        opened["result"]["protocolVersion"], "2025-11-25",
        "{opened}"
    );
    bridge.send(initialized()).await;
}

#[tokio::test]
async fn a_legacy_client_is_bridged() {
    let server = Server::start(&["--demo"]).await;
    let mut bridge = Bridge::start(&["--url", &server.mcp]);
    open(&mut bridge).await;
    for (id, tool) in [(1, "echo"), (2, "echo_once")] {
        bridge
            .send(call(id, tool, json!({ "text": "hello" })))
            .await;
        assert_eq!(text(&bridge.response(id).await), "hello");
    }
    bridge.send(call(3, "toggle_bonus_tool", json!({}))).await;
    bridge.of_method("notifications/tools/list_changed").await;
    bridge.close();
    assert_eq!(bridge.end().await.0, 0);
    // The bridge deleted the session.
    let status = reqwest::get(format!("{}/status", server.admin))
        .await
        .unwrap();
    let status: serde_json::Value = status.json().await.unwrap();
    assert_eq!(status["sessions"]["live"], 0, "{status}");
}

#[tokio::test]
async fn a_modern_client_is_bridged() {
    let server = Server::start(&["--demo"]).await;
    let mut bridge = Bridge::start(&["--url", &server.mcp]);
    bridge.send(modern(0, "server/discover", json!({}))).await;
    assert!(bridge.response(0).await.get("result").is_some());
    let mut job = modern_call(1, "long_job", json!({ "steps": 2, "interval_ms": 10 }));
    job["params"]["_meta"]["progressToken"] = json!(9);
    bridge.send(job).await;
    bridge.of_method("notifications/progress").await;
    assert!(bridge.response(1).await.get("result").is_some());
    let job = modern_call(2, "long_job", json!({ "steps": 600, "interval_ms": 100 }));
    bridge.send(job).await;
    bridge
        .send(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 2 } }),
        )
        .await;
    bridge
        .send(modern_call(3, "echo", json!({ "text": "free" })))
        .await;
    assert_eq!(text(&bridge.response(3).await), "free");
    bridge.close();
    assert_eq!(bridge.end().await, (0, vec![]));
}

#[tokio::test]
async fn a_stream_that_is_closed_for_polling_is_resumed() {
    let server = Server::start(&["--conformance"]).await;
    let mut bridge = Bridge::start(&["--url", &server.mcp]);
    open(&mut bridge).await;
    bridge.send(call(1, "test_reconnection", json!({}))).await;
    let answer = bridge.response(1).await;
    assert!(answer.get("result").is_some(), "{answer}");
}

#[tokio::test]
async fn a_restart_of_the_server_goes_unnoticed() {
    let mut server = Server::start(&["--demo"]).await;
    let url = server.mcp.clone();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut bridge = Bridge::start(&["--url", &url]);
    open(&mut bridge).await;
    bridge
        .send(call(1, "echo", json!({ "text": "before" })))
        .await;
    assert_eq!(text(&bridge.response(1).await), "before");

    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
    bridge
        .send(call(2, "echo", json!({ "text": "between" })))
        .await;
    let _next = Server::start(&["--demo", "--listen", address]).await;
    assert_eq!(
        text(&bridge.response(2).await),
        "between",
        "{}",
        bridge.log()
    );
    bridge.send(call(3, "toggle_bonus_tool", json!({}))).await;
    bridge.of_method("notifications/tools/list_changed").await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_answer() {
    let mut bridge = Bridge::start(&["--url", "http://127.0.0.1:9/mcp"]);
    bridge.send(modern(0, "server/discover", json!({}))).await;
    let answer = bridge.response(0).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("cannot be reached"), "{message}");
    assert_eq!(answer["error"]["code"], 50_301);
}

#[tokio::test]
async fn the_token_is_sent_and_its_lack_explained() {
    let hash = shoal_node::config::TokenHash::of("token").to_hex();
    let tokens = format!("[{{ name = 'alice', sha256 = '{hash}' }}]");
    let environment = [
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS", tokens.as_str()),
    ];
    let server = Server::start_with(&["--demo"], &environment).await;
    let arguments = ["--url", server.mcp.as_str()];
    let mut bridge = Bridge::start(&arguments);
    bridge.send(initialize(0, "2025-11-25")).await;
    let refused = bridge.response(0).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("SHOAL_TOKEN"), "{message}");
    let mut bridge = Bridge::start_with(&arguments, &[("SHOAL_TOKEN", "token")]);
    open(&mut bridge).await;
}
