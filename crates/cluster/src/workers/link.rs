use async_trait::async_trait;
use shoal_ports::NodeInfo;
use shoal_rpc::{JoinState, JoiningWorker, LinkConfig, WorkerJoin};
use tokio::sync::watch;
use tokio::time::Instant;

pub(super) trait Links: Send + Sync {
    fn join(&self, address: &str) -> Box<dyn JoinLink>;
}

#[async_trait]
pub(super) trait JoinLink: Send + Sync {
    fn state(&self) -> watch::Receiver<JoinState>;

    fn nodes(&self) -> watch::Receiver<Vec<NodeInfo>>;

    async fn leave(&self, deadline: Instant) -> bool;

    fn stop(&self);
}

pub(super) struct RpcLinks {
    worker: JoiningWorker,
    config: LinkConfig,
}

impl RpcLinks {
    pub(super) fn new(worker: JoiningWorker, config: LinkConfig) -> Self {
        Self { worker, config }
    }
}

impl Links for RpcLinks {
    fn join(&self, address: &str) -> Box<dyn JoinLink> {
        let join = WorkerJoin::start(&self.worker, address, self.config.clone());
        Box::new(join)
    }
}

#[async_trait]
impl JoinLink for WorkerJoin {
    fn state(&self) -> watch::Receiver<JoinState> {
        self.state()
    }

    fn nodes(&self) -> watch::Receiver<Vec<NodeInfo>> {
        self.nodes()
    }

    async fn leave(&self, deadline: Instant) -> bool {
        self.leave(deadline).await
    }

    fn stop(&self) {
        self.stop();
    }
}
