use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{
    Announcement, Attach, Call, CallEvents, CallFailure, CallId, CallOutcome, Caller,
    ForwardedHeaders, LedgerNumber, LogFilter, MayStart, NodeId, PoolCatalog, Principal, Repeat,
    ResourceUpdated, RunningCall, SessionId, Worker, WorkerId, WorkerLoad, WorkerSet,
};
use shoal_protocol::{Method, RawJson, Revision, RpcError};
use shoal_rpc::{ClusterServer, JoiningWorker, LinkConfig, WorkerJoin, serve_workers};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, watch};

struct Echo {
    announcement: watch::Sender<Announcement>,
    updates: broadcast::Sender<ResourceUpdated>,
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

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    fn load(&self) -> WorkerLoad {
        WorkerLoad {
            capacity: 1024,
            ..WorkerLoad::default()
        }
    }

    async fn start(&self, call: Call, _: Option<LedgerNumber>) -> Result<RunningCall, CallFailure> {
        let result = call.params.unwrap_or(RawJson::from_static("{}"));
        Ok(RunningCall {
            events: CallEvents::finished(CallOutcome::Result(result)),
            control: Arc::new(NoControl),
            worker: None,
        })
    }

    async fn attach(&self, _: Attach) -> Result<RunningCall, CallFailure> {
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

struct First(mpsc::UnboundedSender<Arc<dyn Worker>>);

impl WorkerSet for First {
    fn add(&self, worker: Arc<dyn Worker>) {
        let _ = self.0.send(worker);
    }

    fn remove(&self, _: &WorkerId) {}
}

pub(crate) struct Pair {
    pub(crate) worker: Arc<dyn Worker>,
    _nodes: watch::Sender<Vec<shoal_ports::NodeInfo>>,
    _join: WorkerJoin,
}

pub(crate) async fn pair() -> Result<Pair, Box<dyn std::error::Error>> {
    let config = LinkConfig::default();
    let (sender, mut workers) = mpsc::unbounded_channel();
    let (told, nodes) = watch::channel(Vec::new());
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
        updates: broadcast::Sender::new(1),
    }));
    let join = WorkerJoin::start(&echo, &address, config);
    let worker = workers.recv().await.ok_or("no worker came")?;
    Ok(Pair {
        worker,
        _nodes: told,
        _join: join,
    })
}

pub(crate) fn call() -> Call {
    Call {
        id: CallId::generate(),
        method: Method::ToolsCall,
        params: Some(RawJson::of(&"x".repeat(200))),
        caller: Arc::new(Caller {
            principal: Principal::anonymous(),
            session: None,
            revision: Revision::LATEST,
            client_info: None,
            capabilities: RawJson::from_static("{}"),
            headers: ForwardedHeaders::default(),
            grant: None,
        }),
        progress_token: None,
        log: LogFilter::Off,
        deadline: tokio::time::Instant::now() + Duration::from_secs(60),
        repeat: Repeat::Safe,
        trace: None,
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
    }
}
