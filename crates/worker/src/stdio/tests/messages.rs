use std::time::Duration;

use serde_json::json;
use shoal_ports::{CallFailure, LogFilter, ResourceUpdated};
use shoal_protocol::{Method, RawJson};

use super::harness::{Client, TestBackend, error, eventually, failure, fixture, scratch, text};

#[tokio::test]
async fn a_call_is_answered_and_the_catalog_has_every_page() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let catalog = running.catalog_where(|_| true).await;
    assert_eq!(catalog.tools.len(), 17);
    assert_eq!(
        catalog.tools[0].as_str(),
        r#"{"name": "echo", "inputSchema": {"type": "object"}}"#
    );
    assert_eq!(catalog.resources.len(), 1);
    assert_eq!(catalog.instructions.as_deref(), Some("Be kind."));
    assert!(catalog.declares("logging"));
    assert!(
        catalog
            .server_info
            .as_ref()
            .unwrap()
            .as_str()
            .contains("legacy")
    );
    let outcome = running
        .call(&Client::named("a"), "echo", json!({ "text": "hi" }))
        .await;
    assert_eq!(text(&outcome), "hi");
}

#[tokio::test]
async fn parameters_reach_a_legacy_server_without_what_it_does_not_know() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let mut client = Client::modern("m", r#"{"elicitation":{}}"#);
    client.progress_token = Some(RawJson::from_static("\"mine\""));
    let call = client.raw_call(RawJson::from_static(
        r#"{"name":"params","arguments":{"n":1.50},"_meta":{"progressToken":"mine","io.modelcontextprotocol/protocolVersion":"2026-07-28","com.example/x":{"y":1}},"requestState":"s","inputResponses":{}}"#,
    ));
    let params = text(&running.run(&client, &call).await);
    assert!(params["_meta"]["progressToken"].is_u64());
    assert_eq!(params["_meta"]["com.example/x"], json!({ "y": 1 }));
    let mut names: Vec<_> = params.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["_meta", "arguments", "name"]);
    assert_eq!(params["_meta"].as_object().unwrap().len(), 2);
}

#[tokio::test]
async fn progress_goes_to_its_own_caller_under_its_own_token() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let clients: Vec<Client> = (0..8)
        .map(|at| {
            let mut client = Client::named(&format!("c{at}"));
            // The last two calls have the same token, as calls of two clients may. The first wants
            // no progress.
            client.progress_token = (at > 0).then(|| RawJson::of(&format!("t{}", at.min(6))));
            client
        })
        .collect();
    let calls = clients
        .iter()
        .map(|c| running.call(c, "progress", json!({})));
    for outcome in futures::future::join_all(calls).await {
        assert_eq!(text(&outcome), "done");
    }
    assert!(clients[0].notes(&Method::Progress).is_empty());
    for (at, client) in clients.iter().enumerate().skip(1) {
        let token = format!("t{}", at.min(6));
        let expected: Vec<_> = (1..=3)
            .map(|step| json!({ "progressToken": token, "progress": step }))
            .collect();
        assert_eq!(client.notes(&Method::Progress), expected);
    }
}

#[tokio::test]
async fn a_log_message_reaches_the_only_call_and_no_one_of_several() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let (a, b) = (Client::named("a"), Client::named("b"));
    running.call(&a, "log", json!({ "text": "mine" })).await;
    assert_eq!(
        a.notes(&Method::LogMessage),
        [json!({ "level": "info", "data": "mine" })]
    );
    let file = scratch("log");
    let hanging = running.spawn(&b, "hang", json!({ "file": file.to_str() }));
    // The server reads in order, so it has read the first call when it answers the second.
    running.call(&a, "echo", json!({ "text": "" })).await;
    running.call(&a, "log", json!({ "text": "whose?" })).await;
    assert_eq!(a.notes(&Method::LogMessage).len(), 1);
    assert!(b.notes(&Method::LogMessage).is_empty());
    b.cancel();
    hanging.await.unwrap();
    let state = text(&running.call(&a, "client", json!({})).await);
    assert_eq!(state["levels"], json!(["debug"]));
}

#[tokio::test]
async fn garbage_is_skipped() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let outcome = running
        .call(&Client::named("a"), "garbage", json!({}))
        .await;
    assert_eq!(text(&outcome), "still here");
}

#[tokio::test]
async fn an_answer_that_is_too_large_ends_its_call_only() {
    let mut config = fixture("legacy.py", &[]);
    config.line_bytes = 64 * 1024;
    let running = TestBackend::start(config).await;
    let (a, b) = (Client::named("a"), Client::named("b"));
    let file = scratch("huge");
    let other = running.spawn(&b, "hang", json!({ "file": file.to_str() }));
    let huge = running
        .call(&a, "huge", json!({ "bytes": 1_000_000 }))
        .await;
    let error = error(huge);
    assert!(error.message.contains("larger than a message"), "{error:?}");
    let fits = running.call(&a, "huge", json!({ "bytes": 60_000 })).await;
    assert_eq!(text(&fits).as_str().unwrap().len(), 60_000);
    assert!(!other.is_finished());
    b.cancel();
    other.await.unwrap();
}

#[tokio::test]
async fn a_cancelled_call_ends_and_the_server_is_told() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let client = Client::named("a");
    let file = scratch("cancel");
    let hanging = running.spawn(&client, "hang", json!({ "file": file.to_str() }));
    running
        .call(&Client::named("b"), "echo", json!({ "text": "" }))
        .await;
    client.cancel();
    assert_eq!(failure(hanging.await.unwrap()), CallFailure::Cancelled);
    eventually("the server has seen the cancellation", || file.exists()).await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_too() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let file = scratch("drop");
    let hanging = running.spawn(
        &Client::named("a"),
        "hang",
        json!({ "file": file.to_str() }),
    );
    running
        .call(&Client::named("b"), "echo", json!({ "text": "" }))
        .await;
    hanging.abort();
    eventually("the server has seen the cancellation", || file.exists()).await;
}

#[tokio::test]
async fn a_changed_list_is_read_again_and_counted() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let client = Client::named("a");
    running
        .call(&client, "change", json!({ "tool": "fresh" }))
        .await;
    let catalog = running
        .catalog_where(|catalog| catalog.generations[0] > 0)
        .await;
    assert!(
        catalog
            .tools
            .iter()
            .any(|tool| tool.as_str().contains("fresh"))
    );
    assert_eq!(catalog.generations[1..], [0, 0]);
}

#[tokio::test]
async fn updates_of_subscribed_resources_are_news() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let client = Client::named("a");
    let mut updates = running.0.resource_updates();
    running.0.subscribe("test://a").await.unwrap();
    running.0.subscribe("test://a").await.unwrap();
    let error = running.0.subscribe("missing://b").await.unwrap_err();
    assert_eq!(error.code, -32002);
    running
        .call(&client, "touch", json!({ "uri": "test://unwatched" }))
        .await;
    running
        .call(&client, "touch", json!({ "uri": "test://a" }))
        .await;
    let ResourceUpdated { uri, params } = updates.recv().await.unwrap();
    assert_eq!(
        (uri.as_str(), params.as_str()),
        ("test://a", r#"{"uri": "test://a", "extra": 1}"#)
    );
    let state = text(&running.call(&client, "client", json!({})).await);
    assert_eq!(state["subscribed"], json!(["test://a"]));
    running.0.unsubscribe("test://a").await;
    let mut left = json!(null);
    while left != json!([]) {
        left = text(&running.call(&client, "client", json!({})).await)["subscribed"].clone();
    }
}

#[tokio::test]
async fn nobody_hears_log_messages_that_are_off_from_a_modern_server() {
    let running = TestBackend::start(fixture("modern.py", &[])).await;
    let listener = Client::modern("listener", "{}");
    let mut deaf = Client::modern("deaf", "{}");
    deaf.log = LogFilter::Off;
    running.call(&deaf, "log", json!({})).await;
    let params = text(&running.call(&listener, "log", json!({})).await);
    assert_eq!(params["_meta"]["io.modelcontextprotocol/logLevel"], "debug");
    assert!(deaf.notes(&Method::LogMessage).is_empty());
    assert_eq!(listener.notes(&Method::LogMessage).len(), 1);
}

#[tokio::test]
async fn what_a_server_does_not_read_is_not_executed() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    running
        .call(&Client::named("a"), "stop_reading", json!({}))
        .await;
    let (first, second) = (Client::named("first"), Client::named("second"));
    // Exceeds a pipe's buffer, so the write does not finish.
    let text = "x".repeat(1 << 20);
    let begun = running.spawn(&first, "echo", json!({ "text": text }));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let queued = running.spawn(&second, "echo", json!({ "text": "" }));
    tokio::time::sleep(Duration::from_millis(100)).await;
    second.cancel();
    let queued = failure(queued.await.unwrap());
    assert!(
        matches!(queued, CallFailure::NotExecuted { .. }),
        "{queued:?}"
    );
    first.cancel();
    assert_eq!(failure(begun.await.unwrap()), CallFailure::Cancelled);
}

#[tokio::test]
async fn an_answer_that_is_no_utf_8_is_read_with_replacements() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let client = Client::named("a");
    let answered = running.call(&client, "not_utf8", json!({})).await;
    assert_eq!(text(&answered), "caf\u{fffd}");
    let echoed = running.call(&client, "echo", json!({ "text": "x" })).await;
    assert_eq!(text(&echoed), "x");
}
