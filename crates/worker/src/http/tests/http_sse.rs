//! Servers of HTTP+SSE only: `tests/fixtures/http_sse.py`.

use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::CallFailure;
use tokio::process::Child;

use super::harness::{Client, TestBackend, failure, served, text};
use super::server::started;
use crate::{Backend as _, HttpConfig};

async fn server(flags: &[&str]) -> (Child, HttpConfig) {
    let (child, url) = served("http_sse.py", flags).await;
    let config = HttpConfig {
        restart_delay: Duration::from_millis(20).into(),
        max_restart_delay: Duration::from_millis(200).into(),
        shutdown_grace: Duration::from_millis(500).into(),
        ..HttpConfig::new(url)
    };
    (child, config)
}

async fn seen(config: &HttpConfig) -> Value {
    let url = config.url.replace("/sse", "/seen");
    reqwest::get(url).await.unwrap().json().await.unwrap()
}

async fn seen_where(config: &HttpConfig, holds: impl Fn(&Value) -> bool) {
    let wait = async {
        while !holds(&seen(config).await) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    assert!(waited.is_ok(), "{}", seen(config).await);
}

#[tokio::test]
async fn a_server_that_refuses_streamable_http_is_spoken_to_by_its_stream() {
    for refusal in ["400", "403", "404", "405", "406", "415", "501"] {
        let (_child, config) = server(&["--refusal", refusal]).await;
        let running = TestBackend::of(started(config.clone())).await;
        let client = Client::askable("a");
        let called = async |tool: &str| {
            let outcome = running.call(&client, tool, json!({ "text": "x" })).await;
            text(&outcome)
        };
        assert_eq!(called("echo").await, "x");
        let answered = called("ask").await;
        assert!(answered.is_object(), "{answered}");
        // Open streams: one for each client, and Shoal's own. POSTs to the URL itself: the first
        // request, and the probe for 2026-07-28.
        let first = called("stream").await;
        assert_eq!(called("stream").await, first);
        let other = Client::named("b");
        let own = running.call(&other, "stream", json!({})).await;
        assert_ne!(text(&own), first);
        let seen = seen(&config).await;
        assert_eq!((&seen["posts"], &seen["open"]), (&json!(2), &json!(3)));
    }
}

#[tokio::test]
async fn its_stream_may_begin_otherwise_or_come_by_post() {
    for flags in [
        &[
            "--before",
            ": hello\n\nevent: ping\ndata: 1\n\ndata: {}\n\nretry: 9\n\n",
        ][..],
        &["--stream-on-post"],
        &["--stream-on-post", "--before", "event: ping\ndata:\n\n"],
    ] {
        let (_child, config) = server(flags).await;
        let running = TestBackend::of(started(config)).await;
        let client = Client::named("a");
        let outcome = running.call(&client, "echo", json!({ "text": "x" })).await;
        assert_eq!(text(&outcome), "x", "{flags:?}");
    }
}

#[tokio::test]
async fn what_refuses_initialize_and_names_no_url_keeps_its_refusal() {
    let long = format!("data: {}\n\n", "x".repeat(70_000));
    for (flags, told) in [
        (["--refusal", "403", "--before", long.as_str()], "403"),
        (["--refusal", "401", "--before", ""], "401"),
    ] {
        let (_child, config) = server(&flags).await;
        let backend = started(config.clone());
        let mut state = backend.state();
        let told = state.wait_for(|state| {
            let detail = state.detail.as_ref();
            detail.is_some_and(|detail| detail.contains(told))
        });
        let told = tokio::time::timeout(Duration::from_secs(20), told).await;
        assert!(told.unwrap().unwrap().catalog.is_none());
        assert_eq!(seen(&config).await["runs"], json!({}));
    }
}

#[tokio::test]
async fn a_stream_that_ends_leaves_its_calls_unknown_and_is_opened_again() {
    let (_child, config) = server(&[]).await;
    let running = TestBackend::of(started(config.clone())).await;
    let client = Client::named("a");
    let waits = running.spawn(&client, "waits", json!({}));
    let broken = running.call(&client, "breaks", json!({})).await;
    for ended in [broken, waits.await.unwrap()] {
        assert!(matches!(failure(ended), CallFailure::OutcomeUnknown { .. }));
    }
    let outcome = running.call(&client, "echo", json!({ "text": "x" })).await;
    assert_eq!(text(&outcome), "x");
    assert_eq!(seen(&config).await["runs"]["breaks"], 1);
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    let (_child, config) = server(&[]).await;
    let running = TestBackend::of(started(config.clone())).await;
    let client = Client::named("a");
    let waits = running.spawn(&client, "waits", json!({}));
    seen_where(&config, |seen| seen["runs"]["waits"] == 1).await;
    client.cancel();
    assert_eq!(failure(waits.await.unwrap()), CallFailure::Cancelled);
    seen_where(&config, |seen| seen["cancelled"] == 1).await;
}

#[tokio::test]
async fn streams_end_with_the_backend() {
    let (_child, config) = server(&[]).await;
    let running = TestBackend::of(started(config.clone())).await;
    running.0.shutdown().await;
    seen_where(&config, |seen| seen["open"] == 0).await;
}

#[tokio::test]
async fn messages_go_to_no_other_origin() {
    let (_child, config) = server(&["--endpoint", "http://localhost:9/messages"]).await;
    let backend = started(config.clone());
    let mut state = backend.state();
    let told = state.wait_for(|state| {
        state
            .detail
            .as_ref()
            .is_some_and(|told| told.contains("same origin"))
    });
    let told = tokio::time::timeout(Duration::from_secs(20), told).await;
    assert!(told.unwrap().unwrap().catalog.is_none());
    assert_eq!(seen(&config).await["runs"], json!({}));
}
