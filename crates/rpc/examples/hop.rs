//! Prints what a call over a worker link costs: `cargo run --release -p shoal-rpc --example hop [calls] [at once]`.
//!
//! Both sides run in this process, so the CPU time is that of the whole hop: caller, link, worker, and the
//! way back.
#![allow(clippy::print_stdout, reason = "this is a program")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use shoal_ports::{
    Announcement, BusEvent, Call, CallEvents, CallFailure, CallId, CallOutcome, Caller, Durability,
    LogFilter, NodeId, PoolCatalog, Principal, RunningCall, SessionId, Worker, WorkerId,
    WorkerLoad, WorkerSet,
};
use shoal_protocol::{Method, RawJson, Revision, RpcError};
use shoal_rpc::{ClusterServer, JoiningWorker, LinkConfig, WorkerJoin, serve_workers};
use shoal_telemetry::trace::TraceContext;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, watch};

/// A worker that answers every call at once with what it was given.
struct Echo {
    announcement: watch::Sender<Announcement>,
    news: broadcast::Sender<BusEvent>,
}

struct NoControl;

impl shoal_ports::CallControl for NoControl {
    fn answer(&self, _: shoal_ports::AskId, _: shoal_protocol::Outcome) -> shoal_ports::Answered {
        shoal_ports::answered(false)
    }

    fn cancel(&self, _: &str) {}
}

#[async_trait]
impl Worker for Echo {
    fn announcement(&self) -> watch::Receiver<Announcement> {
        self.announcement.subscribe()
    }

    fn news(&self) -> broadcast::Receiver<BusEvent> {
        self.news.subscribe()
    }

    fn load(&self) -> WorkerLoad {
        WorkerLoad {
            capacity: 1024,
            ..WorkerLoad::default()
        }
    }

    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure> {
        let result = call.params.unwrap_or(RawJson::from_static("{}"));
        Ok(RunningCall {
            events: CallEvents::finished(CallOutcome::Result(result)),
            control: Arc::new(NoControl),
            worker: None,
        })
    }

    async fn attach(
        &self,
        _: CallId,
        _: u64,
        _: Option<&TraceContext>,
    ) -> Result<RunningCall, CallFailure> {
        Err(CallFailure::OutcomeUnknown {
            reason: "nothing is kept".to_owned(),
        })
    }

    async fn subscribe(&self, _: &str) -> Result<(), RpcError> {
        Ok(())
    }

    async fn unsubscribe(&self, _: &str) {}

    async fn end_session(&self, _: &SessionId) {}
}

/// Hands the first worker on.
struct First(mpsc::UnboundedSender<Arc<dyn Worker>>);

impl WorkerSet for First {
    fn add(&self, worker: Arc<dyn Worker>) {
        let _ = self.0.send(worker);
    }

    fn remove(&self, _: &WorkerId) {}
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| match arguments.next() {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let (calls, at_once) = (number(200_000)?, number(64)?);
    let config = LinkConfig::default();
    let (sender, mut workers) = mpsc::unbounded_channel();
    let (_nodes, nodes) = watch::channel(Vec::new());
    let links = serve_workers(
        NodeId::new("node"),
        Arc::new(First(sender)),
        nodes,
        config.clone(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let server = ClusterServer {
        workers: Some(links),
        gateway: None,
        console: None,
        config: config.clone(),
    };
    tokio::spawn(server.serve(listener, std::future::pending()));
    let echo = JoiningWorker::new(Arc::new(Echo {
        announcement: watch::Sender::new(Announcement {
            worker: WorkerId::new("echo"),
            pool: "echo".into(),
            catalog: Some(Arc::new(PoolCatalog::default())),
            detail: None,
        }),
        news: broadcast::Sender::new(1),
    }));
    let _join = WorkerJoin::start(&echo, &address, config);
    let worker = workers.recv().await.ok_or("no worker came")?;
    run(&worker, calls / 10, at_once).await;
    let (began, cpu) = (Instant::now(), cpu_time());
    run(&worker, calls, at_once).await;
    let per_call = |spent: Duration| spent.as_secs_f64() * 1e6 / calls as f64;
    println!(
        "{calls} calls, {at_once} at once: {:.2} µs of CPU and {:.2} µs of time a call",
        per_call(cpu_time().saturating_sub(cpu)),
        per_call(began.elapsed())
    );
    Ok(())
}

async fn run(worker: &Arc<dyn Worker>, calls: usize, at_once: usize) {
    let caller = Arc::new(Caller {
        principal: Principal::anonymous(),
        session: None,
        revision: Revision::LATEST,
        client_info: None,
        capabilities: RawJson::from_static("{}"),
    });
    let params = RawJson::of(&"x".repeat(200));
    let tasks = (0..at_once).map(|_| {
        let (worker, caller, params) = (Arc::clone(worker), Arc::clone(&caller), params.clone());
        tokio::spawn(async move {
            for _ in 0..calls / at_once {
                let call = Call {
                    id: CallId::generate(),
                    method: Method::ToolsCall,
                    params: Some(params.clone()),
                    caller: Arc::clone(&caller),
                    progress_token: None,
                    log: LogFilter::Off,
                    deadline: tokio::time::Instant::now() + Duration::from_secs(60),
                    durability: Durability::Repeatable,
                    trace: None,
                    worker: None,
                };
                if let Ok(mut running) = worker.start(call).await {
                    running.events.next().await;
                }
            }
        })
    });
    futures::future::join_all(tasks).await;
}

/// CPU time of this process, from `/proc` (in hundredths of a second); zero elsewhere.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks
        .filter_map(|field| field.parse::<u64>().ok())
        .sum::<u64>();
    Duration::from_millis(ticks * 10)
}
