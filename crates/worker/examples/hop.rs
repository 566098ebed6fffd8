//! What the worker costs a small call: time from `start` to `Finished`, with a backend that does nothing
//! and with an rmcp handler's `echo`.
#![expect(clippy::print_stdout, reason = "the numbers are what it is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use shoal_demo::DemoServer;
use shoal_ports::{
    BusEvent, Call, CallEventKind, CallId, CallOutcome, Caller, Durability, LogFilter, PoolCatalog,
    Principal, Worker, WorkerId,
};
use shoal_protocol::{Method, RawJson, Revision, RpcError};
use shoal_worker::{Backend, BackendState, CallContext, PoolConfig, RmcpBackend, WorkerRuntime};
use tokio::runtime::Builder;
use tokio::sync::{broadcast, watch};

const CALLS: u32 = 400_000;

struct Idle {
    state: watch::Sender<BackendState>,
    news: broadcast::Sender<BusEvent>,
}

#[async_trait]
impl Backend for Idle {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.state.subscribe()
    }

    fn news(&self) -> broadcast::Receiver<BusEvent> {
        self.news.subscribe()
    }

    async fn run(&self, _call: &Call, _context: &CallContext) -> CallOutcome {
        CallOutcome::Result(RawJson::from_static("{}"))
    }

    async fn subscribe(&self, _uri: &str) -> Result<(), RpcError> {
        Ok(())
    }

    async fn unsubscribe(&self, _uri: &str) {}

    async fn shutdown(&self) {}
}

fn main() -> std::io::Result<()> {
    let one = Builder::new_current_thread().enable_all().build()?;
    one.block_on(measure_all("1 thread"));
    let two = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    two.block_on(measure_all("2 threads"));
    Ok(())
}

async fn measure_all(threads: &str) {
    for callers in [1, 64] {
        let name = format!("{threads}, {callers} callers");
        let idle = Arc::new(Idle {
            state: watch::Sender::new(BackendState {
                catalog: Some(Arc::new(PoolCatalog::default())),
                detail: None,
            }),
            news: broadcast::Sender::new(1),
        });
        measure(&format!("{name}, nothing"), idle, callers).await;
        let demo = RmcpBackend::start(DemoServer::new()).await;
        measure(&format!("{name}, rmcp echo"), demo, callers).await;
    }
}

async fn measure(name: &str, backend: Arc<dyn Backend>, callers: u32) {
    let worker = WorkerRuntime::start(WorkerId::new("w"), PoolConfig::new("p"), backend).await;
    let caller = Arc::new(Caller {
        principal: Principal::anonymous(),
        session: None,
        revision: Revision::LATEST,
        client_info: None,
        capabilities: RawJson::from_static("{}"),
    });
    let (cpu, wall) = (cpu_time(), Instant::now());
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (worker, caller) = (Arc::clone(&worker), Arc::clone(&caller));
            tokio::spawn(async move {
                for _ in 0..CALLS / callers {
                    call(&*worker, &caller).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("callers do not panic");
    }
    let (cpu, wall) = (cpu_time() - cpu, wall.elapsed());
    println!(
        "{name}: {} ns a call, {} ns of CPU",
        (wall / CALLS).as_nanos(),
        (cpu / CALLS).as_nanos()
    );
}

async fn call(worker: &dyn Worker, caller: &Arc<Caller>) {
    let call = Call {
        id: CallId::generate(),
        method: Method::ToolsCall,
        params: Some(RawJson::from_static(
            r#"{"name":"echo","arguments":{"text":"hello"}}"#,
        )),
        caller: Arc::clone(caller),
        progress_token: None,
        log: LogFilter::Off,
        deadline: tokio::time::Instant::now() + Duration::from_secs(60),
        durability: Durability::Repeatable,
        trace: None,
        worker: None,
        ledger: None,
        attach_only: false,
        epoch: None,
    };
    let mut running = worker.start(call).await.expect("there is room");
    let event = running.events.next().await.expect("the call ends");
    assert!(matches!(event.kind, CallEventKind::Finished(_)));
}

/// The process's CPU time, in the kernel's ticks of 10 ms.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |at: usize| {
        let field = after_name.split_whitespace().nth(at);
        field
            .and_then(|field| field.parse::<u64>().ok())
            .unwrap_or(0)
    };
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}
