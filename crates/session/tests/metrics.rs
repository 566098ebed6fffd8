//! Metrics of real sessions, in one test because they are process-wide.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step is the report"
)]

#[path = "session/support/mod.rs"]
mod support;

use std::time::Duration;

use shoal_ports::{GatewayError, NodeId, SessionGateway, Store};
use shoal_protocol::EventId;
use shoal_session::SessionConfig;
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::prometheus_text;
use support::{Bench, read, read_all};

const LONG: Duration = Duration::from_secs(60);

async fn lease(store: &Store, node: &str) {
    let renewed = store.directory.renew_lease(&NodeId::new(node), LONG).await;
    renewed.unwrap();
}

fn value(series: &str) -> Option<f64> {
    let text = prometheus_text();
    let line = text.lines().find(|line| {
        line.strip_prefix(series)
            .is_some_and(|rest| rest.starts_with(' '))
    })?;
    line.rsplit(' ').next()?.parse().ok()
}

#[track_caller]
fn says(series: &str, expected: f64) {
    let found = value(series);
    assert_eq!(found, Some(expected), "{series} in\n{}", prometheus_text());
}

async fn comes_to_say(series: &str, expected: f64) {
    for _ in 0..2_000 {
        if value(series) == Some(expected) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    says(series, expected);
}

#[tokio::test]
async fn sessions_are_counted_from_their_opening_to_their_end() {
    let _on = shoal_telemetry::init(&Telemetry::default(), &Logging::default()).unwrap();
    let bench = Bench::new(SessionConfig::default());
    lease(&bench.store, "test").await;
    lease(&bench.store, "b").await;

    let alice = bench.open("alice", "2025-11-25").await;
    says("shoal_session_created_total", 1.0);
    says(
        r#"shoal_session_claims_total{shoal_outcome="won",shoal_reason="created"}"#,
        1.0,
    );
    says(r#"shoal_session_held{shoal_state="active"}"#, 1.0);
    says(r#"shoal_session_held{shoal_state="passive"}"#, 0.0);
    says(r#"shoal_actor_alive{shoal_kind="session"}"#, 0.0);
    says(r#"shoal_actor_mailbox{shoal_kind="session"}"#, 0.0);

    let mut stream = bench.stream(&alice, 1, "stream-long").await;
    says(
        r#"shoal_journal_begin_duration_seconds_count{shoal_outcome="begun"}"#,
        1.0,
    );
    says("shoal_journal_running", 1.0);
    says(r#"shoal_actor_alive{shoal_kind="session"}"#, 0.0);
    let ping = r#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#;
    bench.json(&alice, ping).await;
    says(r#"shoal_actor_alive{shoal_kind="session"}"#, 0.0);
    bench.script.holds.send_replace(true);
    let subscribe =
        r#"{"jsonrpc":"2.0","id":98,"method":"resources/subscribe","params":{"uri":"r://1"}}"#;
    let mut subscribing = Box::pin(bench.json(&alice, subscribe));
    assert!(futures::poll!(&mut subscribing).is_pending());
    says(r#"shoal_actor_alive{shoal_kind="session"}"#, 1.0);
    says(r#"shoal_actor_mailbox{shoal_kind="session"}"#, 1.0);
    bench.script.holds.send_replace(false);
    subscribing.await;
    comes_to_say(r#"shoal_actor_alive{shoal_kind="session"}"#, 0.0).await;
    let tool = bench.script.call("stream-long").await;
    tool.progress(1).await;
    let first = read(&mut stream, 1).await;
    tool.progress(2).await;
    let second = read(&mut stream, 1).await;
    says("shoal_event_log_appended_total", 2.0);
    says(
        r#"shoal_event_log_append_duration_seconds_count{shoal_outcome="written"}"#,
        2.0,
    );
    let written = first.events[0].1.len() + second.events[0].1.len();
    #[expect(clippy::cast_precision_loss, reason = "two short messages")]
    for bytes in [
        "shoal_event_log_appended_size_bytes_total",
        "shoal_event_log_size_bytes",
    ] {
        says(bytes, written as f64);
    }
    let back = bench.sessions.listen(&alice, Some(first.cursor())).await;
    read(&mut back.unwrap(), 1).await;
    says(
        r#"shoal_stream_resumes_total{shoal_outcome="replayed"}"#,
        1.0,
    );
    let back = bench.sessions.listen(&alice, Some(second.cursor())).await;
    drop(back.unwrap());
    says(
        r#"shoal_stream_resumes_total{shoal_outcome="continued"}"#,
        1.0,
    );
    let nowhere = EventId {
        epoch: first.cursor().epoch + 1,
        ..first.cursor()
    };
    let gone = bench.sessions.listen(&alice, Some(nowhere)).await;
    assert!(matches!(gone, Err(GatewayError::HistoryGone(_))));
    says(
        r#"shoal_stream_resumes_total{shoal_outcome="history_gone"}"#,
        1.0,
    );

    let mut standalone = bench.sessions.listen(&alice, None).await.unwrap();
    bench.script.change_lists();
    read(&mut standalone, 1).await;
    says("shoal_stream_passed_total", 1.0);
    says("shoal_event_log_appended_total", 2.0);

    let other = bench.another_node("b");
    let ended = bench.store.directory.end_lease(&NodeId::new("test")).await;
    ended.unwrap();
    let mut after = other.listen(&alice, Some(second.cursor())).await.unwrap();
    says(
        r#"shoal_session_claims_total{shoal_outcome="won",shoal_reason="taken_over"}"#,
        1.0,
    );
    let taken = r#"shoal_session_takeover_duration_seconds_count{shoal_outcome="done"}"#;
    comes_to_say(taken, 1.0).await;
    says(
        r#"shoal_journal_attaches_total{shoal_outcome="attached"}"#,
        1.0,
    );
    tool.finish("{}").await;
    read_all(&mut after).await;
    bench.sessions.revalidate().await.unwrap();
    says(r#"shoal_session_ended_total{shoal_reason="lost"}"#, 1.0);
    assert_eq!(value("shoal_journal_running"), Some(0.0), "on both nodes");
    let none = prometheus_text();
    assert!(
        !none.contains("mcp_server_session_duration_seconds_count"),
        "it goes on"
    );

    other.close(&alice).await.unwrap();
    says(r#"shoal_session_ended_total{shoal_reason="deleted"}"#, 1.0);
    let lived = "mcp_server_session_duration_seconds_count{mcp_protocol_version=\"2025-11-25\",\
                 network_protocol_name=\"http\",network_transport=\"tcp\"}";
    says(lived, 1.0);
    lease(&bench.store, "test").await;
    bench.open("bob", "2025-11-25").await;
    assert_eq!(bench.sessions.hand_over().await.sessions, 1);
    says(
        r#"shoal_session_handovers_total{shoal_outcome="released"}"#,
        1.0,
    );
    says(r#"shoal_session_held{shoal_state="active"}"#, 0.0);
}
