use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{CallEventKind, LogFilter, Repeat};
use shoal_protocol::{LogLevel, Method, Revision};

use crate::dispatcher::just_started;
use crate::server::{Server, header, modern_headers, rpc, with_meta};
use crate::sse::Events;

#[tokio::test]
async fn a_quick_result_is_plain_json() {
    let server = Server::start().await;
    let answer = server.tool("echo").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "content-type"), "application/json");
    let body: Value = {
        let text = answer.text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(body["id"], 7);
    assert_eq!(body["result"]["resultType"], "complete");
    assert_eq!(server.load.requests_in_flight(), 0);
}

#[tokio::test]
async fn the_call_says_who_asks_and_how() {
    let server = Server::start().await;
    let more = json!({
        "io.modelcontextprotocol/logLevel": "warning",
        "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
        "progressToken": "p1",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    });
    let params = with_meta(json!({"name": "write", "arguments": {"x": 1.0}}), more);
    let request = server
        .post(rpc("tools/call", &params).to_string())
        .headers(modern_headers("tools/call", &params));
    assert_eq!(request.send().await.unwrap().status(), 200);
    let call = server.dispatcher.calls.lock()[0].clone();
    assert_eq!(call.method, Method::ToolsCall);
    assert!(call.params.unwrap().as_str().contains(r#""x":1.0"#));
    assert_eq!(call.caller.revision, Revision::V2026_07_28);
    assert_eq!(call.caller.capabilities.as_str(), r#"{"sampling":{}}"#);
    assert!(call.caller.session.is_none());
    assert_eq!(call.log, LogFilter::AtLeast(LogLevel::Warning));
    assert_eq!(call.repeat, Repeat::Never);
    assert_eq!(call.progress_token.unwrap().as_str(), r#""p1""#);
    assert!(
        call.trace
            .unwrap()
            .to_traceparent()
            .starts_with("00-0af7651916cd")
    );
}

#[tokio::test]
async fn without_a_log_level_nothing_is_logged() {
    let server = Server::start().await;
    server.tool("echo").send().await.unwrap();
    assert_eq!(server.dispatcher.calls.lock()[0].log, LogFilter::Off);
}

#[tokio::test]
async fn a_notification_makes_the_answer_a_stream() {
    let server = Server::start().await;
    let sent = tokio::spawn(server.tool("played").send());
    let mut call = server.dispatcher.call().await;
    call.log(r#"{"level":"info","data":"one"}"#).await;
    let mut events = Events::of(sent.await.unwrap().unwrap());
    assert_eq!(events.message().await["params"]["data"], "one");
    assert_eq!(server.load.requests_in_flight(), 1);
    let retry = Duration::from_secs(1);
    call.send(CallEventKind::CloseStream { retry }).await;
    call.log(r#"{"level":"info","data":"two"}"#).await;
    assert_eq!(events.message().await["params"]["data"], "two");
    call.finish(r#"{"resultType":"complete"}"#).await;
    let last = events.message().await;
    assert_eq!(
        (&last["id"], &last["result"]["resultType"]),
        (&json!(7), &json!("complete"))
    );
    assert_eq!(events.block().await, None);
    assert!(server.dispatcher.cancelled.borrow().is_empty());
}

#[tokio::test]
async fn a_silent_call_becomes_a_stream_that_is_kept_alive() {
    let server = Server::with(|config| {
        config.streams.grace = Duration::from_millis(10).into();
        config.streams.keep_alive = Duration::from_millis(20).into();
    })
    .await;
    let mut events = Events::of(server.tool("played").send().await.unwrap());
    assert_eq!(events.block().await.unwrap(), ":");
    assert_eq!(events.block().await.unwrap(), ":");
    server
        .dispatcher
        .call()
        .await
        .finish(r#"{"resultType":"complete"}"#)
        .await;
    while let Some(block) = events.block().await {
        assert!(block == ":" || block.contains(r#""id":7"#), "{block}");
    }
}

#[tokio::test]
async fn a_call_that_starts_slowly_becomes_a_stream_too() {
    let server = Server::start().await;
    let mut events = Events::of(server.tool("slow-start").send().await.unwrap());
    server.dispatcher.gate.add_permits(1);
    server.dispatcher.call().await.finish("{}").await;
    assert_eq!(events.message().await["id"], 7);
}

#[tokio::test]
async fn closing_the_stream_cancels_the_call() {
    let server = Server::start().await;
    let events = Events::of(server.tool("played").send().await.unwrap());
    let _call = server.dispatcher.call().await;
    drop(events);
    assert!(server.dispatcher.was_cancelled().await.contains("closed"));
}

#[tokio::test]
async fn leaving_before_the_first_byte_cancels_the_call() {
    let server = Server::with(|config| config.streams.grace = Duration::from_secs(60).into()).await;
    let sent = tokio::spawn(server.tool("played").send());
    let _call = server.dispatcher.call().await;
    sent.abort();
    server.dispatcher.was_cancelled().await;
}

#[tokio::test]
async fn leaving_while_a_call_starts_cancels_it_once_it_has() {
    let server = Server::start().await;
    let events = Events::of(server.tool("slow-start").send().await.unwrap());
    drop(events);
    // Wait until the edge has dropped the request, before the call may start.
    while server.load.requests_in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    server.dispatcher.gate.add_permits(1);
    server.dispatcher.was_cancelled().await;
}

#[tokio::test]
async fn a_worker_that_vanishes_leaves_one_honest_error() {
    let server = Server::start().await;
    let mut events = Events::of(server.tool("played").send().await.unwrap());
    drop(server.dispatcher.call().await);
    let last = events.message().await;
    assert_eq!(
        (&last["id"], &last["error"]["code"]),
        (&json!(7), &json!(50_002))
    );
    assert_eq!(events.block().await, None);
}

#[tokio::test]
async fn what_may_lack_a_pool_is_not_kept_for_long() {
    let server = Server::start().await;
    *server.dispatcher.lacks.lock() = Some(just_started());
    let discover = server.modern("server/discover", json!({}));
    let text = discover.send().await.unwrap().text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["result"]["ttlMs"], 2500, "{body}");
}

#[tokio::test]
async fn discover_describes_the_server() {
    let server = Server::start().await;
    let answer = server
        .modern("server/discover", json!({}))
        .send()
        .await
        .unwrap();
    let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let result = &body["result"];
    assert_eq!(body["id"], 7);
    assert_eq!(result["resultType"], "complete");
    let versions = json!([
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05"
    ]);
    assert_eq!(result["supportedVersions"], versions);
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(result["instructions"], "be kind");
    assert_eq!(result["cacheScope"], "public");
    assert!(result["ttlMs"].is_u64());
    let server_info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server_info["name"], "fake");
}

#[tokio::test]
async fn a_name_may_be_encoded() {
    let server = Server::start().await;
    let params = with_meta(json!({"uri": "file:///ä"}), json!({}));
    let encoded = shoal_protocol::encode_value("file:///ä");
    let answer = server
        .post(rpc("resources/read", &params).to_string())
        .header("mcp-protocol-version", "2026-07-28")
        .header("MCP-METHOD", "  resources/read  ")
        .header("mcp-name", encoded);
    assert_eq!(answer.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_notification_is_accepted_and_dropped() {
    let server = Server::start().await;
    let body =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let answer = server
        .post(body.to_string())
        .header("mcp-protocol-version", "2026-07-28");
    assert_eq!(answer.send().await.unwrap().status(), 202);
    assert!(server.gateway.delivered.lock().is_empty());
}
