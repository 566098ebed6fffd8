use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use shoal_demo::{ConformanceServer, DemoServer};
use shoal_ports::{Attach, Call, CallFailure, CallOutcome, Worker};
use shoal_protocol::{Method, Revision, code};
use tokio::time::Instant;

use super::client::{Client, Said, ended, result, said, text, until};
use super::probe::Probe;
use crate::PoolConfig;

#[tokio::test]
async fn tools_resources_prompts_and_completions_answer() {
    let client = Client::of(DemoServer::new()).await;
    assert_eq!(
        client.text("echo", json!({ "text": "hello" })).await,
        "hello"
    );
    let sum = client.call("add", json!({ "a": 1.5, "b": 2 })).await;
    assert_eq!(result(&sum)["structuredContent"], json!({ "sum": 3.5 }));

    let read = client.request(Method::ResourcesRead, json!({ "uri": "demo://readme" }));
    let read = ended(&mut client.start(read).await).await;
    assert_eq!(result(&read)["contents"][0]["uri"], "demo://readme");

    let prompt = client.catalog().prompts[0].clone();
    let prompt: serde_json::Value = prompt.read().unwrap();
    let arguments = json!({ "code": "1", "language": "rust", "text": "x", "topic": "x" });
    let get = json!({ "name": prompt["name"], "arguments": arguments });
    let got = client.start(client.request(Method::PromptsGet, get)).await;
    assert!(result(&ended(&mut { got }).await)["messages"].is_array());

    let reference = json!({ "type": "ref/resource", "uri": "demo://greeting/{name}" });
    let complete = json!({ "ref": reference, "argument": { "name": "name", "value": "" } });
    let completed = client
        .start(client.request(Method::Complete, complete))
        .await;
    assert!(result(&ended(&mut { completed }).await)["completion"].is_object());
}

#[tokio::test]
async fn results_say_what_kind_they_are_to_modern_callers_only() {
    let client = Client::of(DemoServer::new()).await;
    for (revision, kind) in [
        (Revision::V2025_11_25, serde_json::Value::Null),
        (Revision::V2026_07_28, json!("complete")),
    ] {
        for (method, params) in [
            (
                Method::ToolsCall,
                json!({ "name": "echo", "arguments": { "text": "hello" } }),
            ),
            (Method::ResourcesRead, json!({ "uri": "demo://readme" })),
        ] {
            let mut call = client.request(method.clone(), params);
            Arc::make_mut(&mut call.caller).revision = revision;
            let outcome = ended(&mut client.start(call).await).await;
            assert_eq!(result(&outcome)["resultType"], kind, "{method} {revision}");
        }
    }
}

#[tokio::test]
async fn errors_of_the_handler_are_passed_on() {
    let client = Client::of(DemoServer::new()).await;
    let failed = client.call("no such tool", json!({})).await;
    assert!(matches!(failed, CallOutcome::Error(error) if error.code == code::INVALID_PARAMS));

    let missing = client.request(Method::ResourcesRead, json!({ "uri": "demo://nothing" }));
    let CallOutcome::Error(error) = ended(&mut client.start(missing).await).await else {
        panic!("expected an error");
    };
    assert_eq!(error.code, code::RESOURCE_NOT_FOUND);
    assert!(error.data.is_some());

    let malformed = client.request(Method::ToolsCall, json!({ "name": 7 }));
    let malformed = ended(&mut client.start(malformed).await).await;
    assert!(matches!(malformed, CallOutcome::Error(error) if error.code == code::INVALID_PARAMS));
}

#[tokio::test]
async fn progress_arrives_in_order_and_before_the_result() {
    let client = Client::of(DemoServer::new()).await;
    let job = client.tool("long_job", json!({ "steps": 20, "interval_ms": 0 }));
    let mut running = client.start(job).await;
    for step in 1..=20 {
        let Said::Told(Method::Progress, params) = said(&mut running).await else {
            panic!("expected progress");
        };
        assert_eq!(params["progress"].as_f64(), Some(f64::from(step)));
        assert_eq!(params["progressToken"], "t");
    }
    assert_eq!(text(&ended(&mut running).await), "done after 20 steps");
}

#[tokio::test]
async fn log_messages_reach_the_caller() {
    let client = Client::of(DemoServer::new()).await;
    let arguments = json!({ "level": "warning", "message": "careful" });
    let mut running = client.start(client.tool("write_log", arguments)).await;
    let Said::Told(Method::LogMessage, params) = said(&mut running).await else {
        panic!("expected a log message");
    };
    assert_eq!(params["level"], "warning");
    assert_eq!(params["data"], "careful");
    assert_eq!(text(&ended(&mut running).await), "logged");
}

#[tokio::test]
async fn tool_can_have_its_stream_closed() {
    let client = Client::of(ConformanceServer::new()).await;
    let mut running = client
        .start(client.tool("test_reconnection", json!({})))
        .await;
    let Said::CloseStream(retry) = said(&mut running).await else {
        panic!("expected the request to close the stream");
    };
    assert_eq!(retry, Duration::from_millis(200));
    ended(&mut running).await;
}

#[tokio::test]
async fn custom_notification_reaches_the_caller() {
    let client = Client::of(Probe::default()).await;
    let mut running = client.start(client.tool("custom", json!({}))).await;
    let Said::Told(method, params) = said(&mut running).await else {
        panic!("expected the notification");
    };
    assert_eq!(
        (method.as_str(), params),
        ("io.example/custom", json!({ "a": 1 }))
    );
    ended(&mut running).await;
}

#[tokio::test]
async fn cancellation_reaches_the_tool() {
    let probe = Probe::default();
    let client = Client::of(probe.clone()).await;
    let mut running = client.start(client.tool("stop", json!({}))).await;
    until(|| client.worker.load().running == 1).await;
    running.control.cancel("enough");
    assert!(matches!(
        ended(&mut running).await,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
    until(|| probe.state.stopped.load(Ordering::SeqCst) == 1).await;
}

// The clock is paused, so that the tool starts before its deadline on a slow machine too.
#[tokio::test(start_paused = true)]
async fn deadline_reaches_the_tool() {
    let probe = Probe::default();
    let client = Client::of(probe.clone()).await;
    let deadline = Instant::now() + Duration::from_millis(20);
    let call = client.tool("stop", json!({}));
    let mut running = client.start(Call { deadline, ..call }).await;
    assert!(matches!(
        ended(&mut running).await,
        CallOutcome::Failed(CallFailure::DeadlineExceeded { .. })
    ));
    until(|| probe.state.stopped.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn panicking_tool_fails_its_call_only() {
    let client = Client::of(Probe::default()).await;
    let hanging = client.start(client.tool("hang", json!({}))).await;
    let panicked = client.call("panic", json!({})).await;
    assert!(
        matches!(&panicked, CallOutcome::Error(error) if error.code == code::INTERNAL_ERROR),
        "a failure would be held against the worker: {panicked:?}"
    );
    assert_eq!(client.text("progress", json!({})).await, "done");
    hanging.control.cancel("end");
}

#[tokio::test]
async fn full_pool_refuses() {
    let config = PoolConfig {
        concurrency: 1,
        queue: 0,
        ..PoolConfig::new("pool")
    };
    let client = Client::of_pool(Probe::default(), config).await;
    let running = client.start(client.tool("stop", json!({}))).await;
    let refused = client
        .worker
        .start(client.tool("stop", json!({})), None)
        .await;
    assert!(matches!(
        refused.err(),
        Some(CallFailure::Overloaded { .. })
    ));
    running.control.cancel("end");
}

#[tokio::test]
async fn running_call_can_be_attached_to() {
    let client = Client::of(DemoServer::new()).await;
    let job = client.tool("long_job", json!({ "steps": 3, "interval_ms": 5 }));
    let id = job.id;
    drop(client.start(job).await);
    let mut running = client.worker.attach(Attach::new(id, 0)).await.unwrap();
    assert!(matches!(said(&mut running).await, Said::Told(..)));
    drop(running);
    until(|| client.worker.load().running == 0).await;
    let mut running = client.worker.attach(Attach::new(id, 3)).await.unwrap();
    assert!(matches!(
        said(&mut running).await,
        Said::Ended(CallOutcome::Result(_))
    ));
}

#[tokio::test]
async fn handler_sees_who_calls_and_in_which_revision() {
    let client = Client::of(Probe::default()).await;
    assert_eq!(
        client.text("whoami", json!({})).await,
        "somebody with tester on 2025-11-25"
    );
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "modern", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "whoami", "_meta": meta });
    let mut running = client
        .start(client.request(Method::ToolsCall, params))
        .await;
    assert_eq!(
        text(&ended(&mut running).await),
        "somebody with modern on 2026-07-28"
    );
}
