use reqwest::Method;
use serde_json::json;
use shoal_edge::{Gauges, Recorder};
use shoal_ports::Outcomes;

use crate::gateway::event;
use crate::server::{Server, modern_headers, rpc, with_meta};
use crate::sse::Events;

fn counted(recorder: &Recorder) -> Outcomes {
    recorder.end_step(5, Gauges::default());
    recorder.steps().pop().unwrap().outcomes
}

async fn settled(recorder: &Recorder, wanted: Outcomes) {
    let mut sum = Outcomes::default();
    while sum != wanted {
        let more = counted(recorder);
        sum.ok += more.ok;
        sum.rejected += more.rejected;
        sum.failed += more.failed;
        sum.cancelled += more.cancelled;
        assert!(sum.total() <= wanted.total(), "{sum:?}");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

fn outcomes(ok: u64, rejected: u64, failed: u64, cancelled: u64) -> Outcomes {
    Outcomes {
        ok,
        rejected,
        failed,
        cancelled,
    }
}

#[tokio::test]
async fn answers_are_counted_whatever_their_form() {
    let server = Server::start().await;
    let legacy = [
        rpc("ping", &json!({})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for body in &legacy {
        server.legacy(body).send().await.unwrap();
    }
    let opening = rpc("initialize", &json!({"protocolVersion": "2025-11-25"}));
    server.post(opening.to_string()).send().await.unwrap();
    server.tool("echo").send().await.unwrap();
    server
        .modern("server/discover", json!({}))
        .send()
        .await
        .unwrap();
    settled(&server.recorder, outcomes(4, 0, 0, 0)).await;
    assert_eq!(server.recorder.errors(9).total, 0);
}

#[tokio::test]
async fn a_streamed_answer_is_counted_when_it_passes() {
    let server = Server::start().await;
    let call = rpc("tools/call", &json!({"name": "slow"}));
    let mut events = Events::of(server.legacy(&call).send().await.unwrap());
    let stream = server.gateway.stream().await;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    stream.send(event(1, progress)).await.unwrap();
    events.block().await.unwrap();
    assert_eq!(counted(&server.recorder), outcomes(0, 0, 0, 0));
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":50300,"message":"full"}}"#;
    stream.send(event(2, error)).await.unwrap();
    events.block().await.unwrap();
    settled(&server.recorder, outcomes(0, 0, 1, 0)).await;
    drop(stream);
    assert_eq!(events.block().await, None);
    let errors = server.recorder.errors(9).items;
    let [error] = &errors[..] else {
        panic!("{errors:?}")
    };
    assert_eq!((error.code, error.message.as_str()), (50_300, "full"));
    assert_eq!(error.target.as_deref(), Some("slow"));
    assert_eq!(error.session.as_deref(), Some("live"));

    let left = Events::of(server.legacy(&call).send().await.unwrap());
    let stream = server.gateway.stream().await;
    drop(left);
    stream.closed().await;
    settled(&server.recorder, outcomes(0, 0, 0, 1)).await;
}

#[tokio::test]
async fn refusals_are_counted_once_and_told_with_their_trace() {
    let server = Server::start().await;
    server.legacy(&json!("no message")).send().await.unwrap();
    let gone = rpc("ping", &json!({}));
    let gone = server
        .post(gone.to_string())
        .header("mcp-session-id", "gone");
    gone.send().await.unwrap();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let meta = json!({"traceparent": format!("00-{trace}-00f067aa0ba902b7-01")});
    let params = with_meta(json!({"name": "no-method", "arguments": {}}), meta);
    let modern = server
        .post(rpc("tools/call", &params).to_string())
        .headers(modern_headers("tools/call", &params));
    modern.send().await.unwrap();
    let get = server.request(Method::GET, "/mcp").send().await.unwrap();
    assert!(get.status().is_client_error());
    settled(&server.recorder, outcomes(0, 3, 0, 0)).await;
    let errors = server.recorder.errors(9).items;
    let seen: Vec<_> = errors.iter().map(|error| error.method.as_deref()).collect();
    assert_eq!(seen, [Some("tools/call"), Some("ping"), None]);
    assert_eq!(errors[0].trace.as_deref(), Some(trace));
    assert_eq!(errors[0].session, None);
}
