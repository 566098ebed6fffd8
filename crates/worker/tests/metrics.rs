//! Tested in a separate process, because metrics are global.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{
    Call, CallFailure, CallId, CallOutcome, Caller, ForwardedHeaders, LogFilter, MayStart, Period,
    PoolCatalog, Principal, Repeat, ResourceUpdated, RunningCall, Worker as _, WorkerId,
};
use shoal_protocol::{Method, RawJson, Revision, RpcError};
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::prometheus_text;
use shoal_worker::{Backend, BackendState, CallContext, PoolConfig, WorkerRuntime};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::Instant;

struct Gate {
    state: watch::Sender<BackendState>,
    updates: broadcast::Sender<ResourceUpdated>,
    open: Semaphore,
}

impl Gate {
    fn new() -> Arc<Self> {
        let catalog = PoolCatalog {
            tools: vec![RawJson::from_static(r#"{"name":"tool"}"#)],
            ..PoolCatalog::default()
        };
        Arc::new(Self {
            state: watch::Sender::new(BackendState {
                catalog: Some(Arc::new(catalog)),
                detail: None,
            }),
            updates: broadcast::Sender::new(1),
            open: Semaphore::new(0),
        })
    }
}

#[async_trait]
impl Backend for Gate {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.state.subscribe()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    async fn run(&self, _: &Call, _: &CallContext) -> CallOutcome {
        self.open.acquire().await.unwrap().forget();
        CallOutcome::Result(RawJson::from_static(r#"{"content":[]}"#))
    }

    async fn subscribe(&self, _: &str) -> Result<(), RpcError> {
        Ok(())
    }

    async fn unsubscribe(&self, _: &str) {}

    fn restarts(&self) -> u64 {
        3
    }

    async fn shutdown(&self) {}
}

fn call() -> Call {
    Call {
        id: CallId::generate(),
        method: Method::ToolsCall,
        params: Some(RawJson::from_static(r#"{"name":"tool"}"#)),
        caller: Arc::new(Caller {
            principal: Principal::anonymous(),
            session: None,
            revision: Revision::V2025_11_25,
            client_info: None,
            capabilities: RawJson::from_static("{}"),
            headers: ForwardedHeaders::default(),
            grant: None,
        }),
        progress_token: None,
        log: LogFilter::Off,
        deadline: Instant::now() + Duration::from_secs(60),
        repeat: Repeat::Safe,
        trace: None,
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
    }
}

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

async fn outcome(running: &mut RunningCall) {
    while running.events.next().await.is_some() {}
}

#[tokio::test]
async fn the_queue_and_the_backend_are_counted() {
    let _guard = shoal_telemetry::init(&Telemetry::default(), &Logging::default()).unwrap();
    let gate = Gate::new();
    let config = PoolConfig {
        concurrency: 1,
        queue: 1,
        queue_age: Period::seconds(60),
        ..PoolConfig::new("math")
    };
    let worker = WorkerRuntime::start(WorkerId::new("w"), config, Arc::clone(&gate) as _).await;
    let pool = [("shoal_pool", "math")];
    let mut first = worker.start(call(), None).await.unwrap();
    while worker.load().running < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut second = worker.start(call(), None).await.unwrap();
    let refused = worker.start(call(), None).await.err();
    assert!(matches!(refused, Some(CallFailure::Overloaded { .. })));

    says("shoal_worker_running", &pool, 1.0);
    says("shoal_pool_queued", &pool, 1.0);
    says("shoal_pool_capacity", &pool, 1.0);
    assert!(value("shoal_pool_queue_age_seconds", &pool) > 0.0);
    says("shoal_actor_mailbox", &[("shoal_kind", "pool")], 1.0);
    says("shoal_actor_alive", &[("shoal_kind", "pool")], 1.0);
    says("shoal_worker_backend_restarts_total", &pool, 3.0);
    let full = [("shoal_pool", "math"), ("shoal_reason", "queue_full")];
    says("shoal_worker_refused_total", &full, 1.0);

    gate.open.add_permits(2);
    outcome(&mut first).await;
    outcome(&mut second).await;
    let told = |outcome| [("shoal_pool", "math"), ("shoal_outcome", outcome)];
    let waited = "shoal_pool_queue_duration_seconds_count";
    says(waited, &told("dispatched"), 2.0);
    let ran = "shoal_worker_call_duration_seconds_count";
    says(ran, &told("completed"), 2.0);
    let asked = "mcp_client_operation_duration_seconds_count";
    says(asked, &[("gen_ai_tool_name", "tool")], 2.0);

    worker
        .shutdown(Instant::now() + Duration::from_secs(10))
        .await;
    assert!(worker.start(call(), None).await.is_err());
    let leaving = [("shoal_pool", "math"), ("shoal_reason", "draining")];
    says("shoal_worker_refused_total", &leaving, 1.0);
    says("shoal_actor_alive", &[("shoal_kind", "pool")], 0.0);
    drop(worker);
    says("shoal_worker_running", &pool, 0.0);
}
