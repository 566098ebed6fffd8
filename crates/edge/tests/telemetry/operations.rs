use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use shoal_ports::StreamItem;
use shoal_telemetry::metrics::{NameKind, metrics};

use crate::gateway::{event, id};
use crate::page::{Series, alone};
use crate::server::{Server, rpc};
use crate::sse::Events;

fn operations(labels: &[(&str, &str)]) -> Series {
    Series::of("mcp_server_operation_duration_seconds_count", labels)
}

fn calls(error: &str) -> Series {
    let method = ("mcp_method_name", "tools/call");
    operations(&[method, ("error_type", error)])
}

#[tokio::test]
async fn initialize_is_counted_with_what_was_agreed_upon() {
    let _turn = alone().await;
    let server = Server::start().await;
    let agreed = operations(&[
        ("mcp_method_name", "initialize"),
        ("mcp_protocol_version", "2025-11-25"),
        ("network_protocol_version", "1.1"),
    ]);
    let asked = rpc("initialize", &json!({"protocolVersion": "2025-06-18"}));
    let answer = server.post(asked.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    agreed.reaches(1.0).await;
}

#[tokio::test]
async fn what_only_tells_is_counted_when_it_is_taken() {
    let _turn = alone().await;
    let server = Server::start().await;
    let told = operations(&[("mcp_method_name", "notifications/initialized")]);
    let text = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.legacy(&text).send().await.unwrap().status(), 202);
    told.reaches(1.0).await;
    let posted = server
        .request(Method::POST, "/messages?sessionId=live")
        .header("content-type", "application/json")
        .body(text.to_string());
    assert_eq!(posted.send().await.unwrap().status(), 202);
    told.reaches(2.0).await;
}

#[tokio::test]
async fn calls_are_counted_by_tool_and_failure() {
    let _turn = alone().await;
    metrics().known.add(NameKind::Tool, ["echo"]);
    let server = Server::start().await;
    let echo = operations(&[
        ("gen_ai_tool_name", "echo"),
        ("gen_ai_operation_name", "execute_tool"),
        ("mcp_protocol_version", "2026-07-28"),
    ]);
    let unknown = operations(&[
        ("gen_ai_tool_name", "_OTHER"),
        ("error_type", "-32602"),
        ("rpc_response_status_code", "-32602"),
    ]);
    let failed = calls("tool_error");
    for tool in ["echo", "unknown"] {
        server
            .tool(tool)
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
    }
    echo.reaches(1.0).await;
    unknown.reaches(1.0).await;

    let answer = tokio::spawn(server.tool("played").send());
    let mut played = server.dispatcher.call().await;
    let result = r#"{"resultType":"complete","content":[],"isError":true}"#;
    played.finish(result).await;
    answer.await.unwrap().unwrap().bytes().await.unwrap();
    failed.reaches(1.0).await;
}

#[tokio::test]
async fn a_call_without_an_answer_is_counted_with_the_reason() {
    let _turn = alone().await;
    let server = Server::start().await;
    let (left, closed, cut) = (
        calls("client_disconnected"),
        calls("stream_closed"),
        calls("stream_cut"),
    );
    let all = operations(&[("mcp_method_name", "tools/call")]);
    let call = rpc("tools/call", &json!({"name": "echo"}));
    let open = || async {
        let events = Events::of(server.legacy(&call).send().await.unwrap());
        (events, server.gateway.stream().await)
    };

    let (events, feed) = open().await;
    drop(events);
    feed.closed().await;
    left.reaches(1.0).await;

    let (mut events, feed) = open().await;
    let retry = Duration::from_secs(1);
    let prime = StreamItem::Prime { id: id(0) };
    feed.send(prime).await.unwrap();
    feed.send(StreamItem::Retry(retry)).await.unwrap();
    while events.block().await.is_some() {}
    closed.reaches(1.0).await;

    let (mut events, feed) = open().await;
    feed.send(event(1, r#"{"method":"notifications/message"}"#))
        .await
        .unwrap();
    drop(feed);
    while events.block().await.is_some() {}
    cut.reaches(1.0).await;

    let (mut events, feed) = open().await;
    feed.send(event(1, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#))
        .await
        .unwrap();
    drop(feed);
    while events.block().await.is_some() {}
    all.reaches(4.0).await;
    for series in [left, closed, cut] {
        series.reaches(1.0).await;
    }
}
