//! A worker's links, as far as keeping them needs to know them.

use async_trait::async_trait;
use shoal_ports::NodeInfo;
use shoal_rpc::{JoinState, JoiningWorker, LinkConfig, WorkerJoin};
use tokio::sync::watch;
use tokio::time::Instant;

/// Makes links of one worker.
pub(super) trait Links: Send + Sync {
    /// Begins to link the worker to the node at `address`.
    fn join(&self, address: &str) -> Box<dyn Link>;
}

/// A link of a worker to an address.
#[async_trait]
pub(super) trait Link: Send + Sync {
    fn state(&self) -> watch::Receiver<JoinState>;

    /// The nodes that the node at the far end tells of.
    fn nodes(&self) -> watch::Receiver<Vec<NodeInfo>>;

    async fn leave(&self, deadline: Instant) -> bool;

    fn stop(&self);
}

/// Links over the network.
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
    fn join(&self, address: &str) -> Box<dyn Link> {
        let join = WorkerJoin::start(&self.worker, address, self.config.clone());
        Box::new(join)
    }
}

#[async_trait]
impl Link for WorkerJoin {
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
