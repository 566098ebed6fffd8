//! Metrics of calls, tested in their own process because metrics are per process.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

#[path = "../dispatch/fake_worker.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod fake_worker;
#[path = "../dispatch/script.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod script;
#[path = "../dispatch/setting.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod setting;

use std::time::Duration;

use serde_json::json;
use shoal_ports::{CallFailure, Dispatcher as _};
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::{Operation, metrics, prometheus_text};

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, Setting, finish, legacy, setting, tools};

fn value(name: &str, attributes: &[(&str, &str)]) -> f64 {
    let page = prometheus_text();
    let head = format!("{name}{{");
    let series = page.lines().filter(|line| line.starts_with(&head));
    let mut found = series.filter(|line| {
        let has = |(key, value): &(&str, &str)| line.contains(&format!("{key}=\"{value}\""));
        attributes.iter().all(has)
    });
    let Some(line) = found.next() else {
        return 0.0;
    };
    assert_eq!(found.next(), None, "{name} {attributes:?} is ambiguous");
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[track_caller]
fn says(name: &str, attributes: &[(&str, &str)], expected: f64) {
    let found = value(name, attributes);
    let shown = prometheus_text();
    assert!(
        (found - expected).abs() < 1e-9,
        "{name} {attributes:?} is {found} and not {expected} in\n{shown}"
    );
}

fn full() -> CallFailure {
    CallFailure::Overloaded {
        reason: "full".into(),
        retry_after: Duration::from_secs(1),
    }
}

async fn call_in_every_way(setting: &Setting) {
    let first = setting.add(FakeWorker::new("w1", "a", tools(&["t", "u"])));
    let second = setting.add(FakeWorker::new("w2", "a", tools(&["t", "u"])));
    setting.result(legacy("t", json!({}))).await;
    setting.result(legacy("u", json!({}))).await;
    first.refuse(full());
    second.refuse(full());
    assert_eq!(setting.failure(legacy("t", json!({}))).await, full());
    let told = |outcome| [("shoal_pool", "a"), ("shoal_outcome", outcome)];
    let calls = "shoal_pool_call_duration_seconds_count";
    says(calls, &told("completed"), 2.0);
    says(calls, &told("tool_error"), 0.0);
    let reason = |reason| [("shoal_pool", "a"), ("shoal_reason", reason)];
    says("shoal_pool_retries_total", &reason("busy"), 1.0);
    says("shoal_pool_sheds_total", &reason("queue_full"), 1.0);
    says("shoal_pool_sheds_total", &reason("no_worker"), 0.0);
}

async fn open_a_circuit(setting: &Setting) {
    let worker = setting.add(FakeWorker::new("w3", "b", tools(&["v"])));
    let lost = CallFailure::OutcomeUnknown { reason: "?".into() };
    for _ in 0..5 {
        worker.refuse(lost.clone());
        assert_eq!(setting.failure(legacy("v", json!({}))).await, lost);
    }
    setting.failure(legacy("v", json!({}))).await;
    let of_pool = [("shoal_pool", "b")];
    says("shoal_pool_circuit_opened_total", &of_pool, 1.0);
    let open = [("shoal_pool", "b"), ("shoal_state", "open")];
    says("shoal_pool_circuits", &open, 1.0);
    let shed = [("shoal_pool", "b"), ("shoal_reason", "circuit_open")];
    says("shoal_pool_sheds_total", &shed, 1.0);
}

async fn attach(setting: &Setting) {
    let worker =
        FakeWorker::new("w4", "c", tools(&["w"])).on_attach(|_, _, mut script| async move {
            script.result(r#"{"content":[],"isError":true}"#).await;
            true
        });
    setting.add(worker);
    let call = legacy("w", json!({})).at("w4");
    let mut running = setting.dispatch.resume(call, 1).await.unwrap();
    let in_pool = [("shoal_pool", "c")];
    says("shoal_pool_in_flight", &in_pool, 1.0);
    finish(&mut running).await;
    drop(running);
    says("shoal_pool_in_flight", &in_pool, 0.0);
    let attached = [("shoal_pool", "c"), ("shoal_outcome", "attached")];
    says("shoal_pool_attaches_total", &attached, 1.0);
    let failed = [("shoal_pool", "c"), ("shoal_outcome", "tool_error")];
    says("shoal_pool_call_duration_seconds_count", &failed, 1.0);
}

#[tokio::test(start_paused = true)]
async fn what_pools_do_is_counted_under_the_names_of_their_catalogs() {
    let _guard = shoal_telemetry::init(&Telemetry::default(), &Logging::default()).unwrap();
    let setting = setting();
    call_in_every_way(&setting).await;
    open_a_circuit(&setting).await;
    attach(&setting).await;

    let ready = [("shoal_pool", "a"), ("shoal_state", "ready")];
    says("shoal_pool_workers", &ready, 2.0);
    let listed = [("shoal_pool", "a"), ("shoal_kind", "tool")];
    says("shoal_catalog_entries", &listed, 2.0);
    let operation = |tool| Operation {
        tool: Some(tool),
        ..Operation::new("tools/call")
    };
    for tool in ["t", "not offered"] {
        let took = Duration::from_millis(1);
        metrics().mcp.served(took, &operation(tool));
    }
    for tool in ["t", "_OTHER"] {
        let named = [("gen_ai_tool_name", tool)];
        says("mcp_server_operation_duration_seconds_count", &named, 1.0);
    }

    drop(setting);
    says("shoal_pool_workers", &ready, 0.0);
}
