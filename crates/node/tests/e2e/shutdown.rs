use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{Events, Session, call, modern, modern_call, post_modern, response, text};
use crate::process::Server;

#[tokio::test]
async fn an_open_stream_is_told_when_to_come_back() {
    // The shutdown must not wait for these clients.
    let patient = [
        ("SHOAL_SHUTDOWN__STREAMS", "1h"),
        ("SHOAL_SHUTDOWN__CALLS", "1h"),
    ];
    let mut server = Server::start_with(&["--demo"], &patient).await;
    let session = Session::open(&server.mcp).await;
    let mut stream = session.listen().await;
    let listen = modern(
        1,
        "subscriptions/listen",
        json!({
        "notifications": { "toolsListChanged": true } }),
    );
    let listener = post_modern(&server.mcp, &listen).send().await.unwrap();
    let mut listener = Events::of(listener);
    let first = listener.message().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");

    server.signal(Signal::SIGTERM);
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    let last = last.unwrap();
    assert!(last.contains("retry: "), "{last}");
    let ended = listener.message().await;
    assert_eq!(
        (&ended["id"], &ended["result"]["resultType"]),
        (&json!(1), &json!("complete"))
    );
    assert!(listener.next().await.is_none());
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
}

#[tokio::test]
async fn running_calls_are_answered_first() {
    let mut server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    // Long enough that all of the next steps come before its end.
    let job = json!({ "steps": 16, "interval_ms": 300 });
    let [legacy, modern] = in_both_eras(&server, &session, job);
    wait_for_calls(&server, 2).await;
    server.signal(Signal::SIGTERM);
    server.wait_for_readiness(503).await;
    assert_eq!(server.readiness().await.1["status"], "draining");
    let echo = session
        .ask(&call(3, "echo", json!({ "text": "late" })))
        .await;
    assert_eq!(text(&echo), "late");
    for answer in [legacy.await.unwrap(), modern.await.unwrap()] {
        assert!(answer.get("result").is_some(), "{answer}");
        assert_eq!(
            answer["result"].get("isError").unwrap_or(&json!(false)),
            &json!(false)
        );
    }
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
}

#[tokio::test]
async fn a_call_that_does_not_end_is_named_and_stopped() {
    let deadlines = [
        ("SHOAL_SHUTDOWN__CALLS", "700ms"),
        ("SHOAL_SHUTDOWN__STREAMS", "200ms"),
        ("SHOAL_SHUTDOWN__REPORT_EVERY", "200ms"),
    ];
    let mut server = Server::start_with(&["--demo"], &deadlines).await;
    let session = Session::open(&server.mcp).await;
    let job = json!({ "steps": 600, "interval_ms": 100 });
    let [legacy, modern] = in_both_eras(&server, &session, job);
    wait_for_calls(&server, 2).await;
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
    let log = server.log();
    for part in [
        "waiting for calls to finish",
        "pool demo: 2 running",
        "giving up on calls",
        "stopping a call that did not end in time",
        "long_job",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    for answer in [legacy.await.unwrap(), modern.await.unwrap()] {
        assert_eq!(answer["error"]["code"], 50002, "{answer}");
    }
}

#[tokio::test]
async fn a_second_signal_exits_at_once() {
    let mut server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let call = call(1, "long_job", json!({ "steps": 600, "interval_ms": 100 }));
    let asked = tokio::spawn(session.post(&call).send());
    wait_for_calls(&server, 1).await;
    server.signal(Signal::SIGTERM);
    server.wait_for_readiness(503).await;
    server.signal(Signal::SIGINT);
    assert_eq!(server.exit_code().await, 130, "{}", server.log());
    asked.abort();
}

#[tokio::test]
async fn balancers_get_their_time() {
    let delay = [
        ("SHOAL_SHUTDOWN__BALANCER_DELAY", "1h"),
        ("SHOAL_LOGGING__LEVEL", "debug"),
    ];
    let mut server = Server::start_with(&["--demo"], &delay).await;
    server.signal(Signal::SIGINT);
    server.wait_for_readiness(503).await;
    for id in 1..4 {
        let echo = modern_call(id, "echo", json!({ "text": "still here" }));
        let answer = post_modern(&server.mcp, &echo).send().await.unwrap();
        assert_eq!(answer.headers().get("connection"), None);
        assert_eq!(text(&response(answer).await), "still here");
    }
    let log = server.log();
    assert!(log.contains("wait for balancers to notice"), "{log}");
    assert!(!log.contains("send clients elsewhere"), "{log}");
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 130);
}

/// Each handle returns its call's answer.
fn in_both_eras(server: &Server, session: &Session, job: Value) -> [JoinHandle<Value>; 2] {
    let legacy = tokio::spawn({
        let (session, call) = (session.clone(), call(1, "long_job", job.clone()));
        async move { session.ask(&call).await }
    });
    let modern = tokio::spawn({
        let post = post_modern(&server.mcp, &modern_call(2, "long_job", job));
        async move { response(post.send().await.unwrap()).await }
    });
    [legacy, modern]
}

async fn wait_for_calls(server: &Server, calls: u64) {
    let status = format!("{}/status", server.admin);
    loop {
        let answer = reqwest::get(&status).await.unwrap();
        let status: Value = answer.json().await.unwrap();
        if status["pools"][0]["workers"][0]["running"] == calls {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
