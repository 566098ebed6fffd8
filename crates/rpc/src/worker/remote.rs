//! A worker of another process, behind the trait.

use std::sync::Arc;

use async_trait::async_trait;
use shoal_ports::{
    Announcement, BusEvent, Call, CallFailure, CallId, LedgerNumber, RunningCall, SessionId,
    Worker, WorkerLoad,
};
use shoal_protocol::{RpcError, TraceContext};
use tokio::sync::{broadcast, watch};

use super::flight::Begin;
use super::peer::WorkerPeer;
use super::reader;

/// A worker of another process.
///
/// It outlives its links. While there is none, [`load`](Worker::load) reports a capacity of 0; calls that
/// are safe to repeat and have sent nothing end at once, with an unknown outcome; all others wait up to
/// [`LinkConfig::rejoin`](crate::LinkConfig::rejoin) for the worker to come back, and then go on where they
/// were. Calls for any worker are refused meanwhile; what is for this one alone (attaching, and calls that
/// name it) waits too.
///
/// Dropping the future of [`start`](Worker::start) detaches from the call, which may run.
pub struct RemoteWorker {
    peer: Arc<WorkerPeer>,
}

impl RemoteWorker {
    pub(super) fn new(peer: Arc<WorkerPeer>) -> Self {
        Self { peer }
    }
}

#[async_trait]
impl Worker for RemoteWorker {
    fn announcement(&self) -> watch::Receiver<Announcement> {
        self.peer.announcement.subscribe()
    }

    fn news(&self) -> broadcast::Receiver<BusEvent> {
        self.peer.news.subscribe()
    }

    fn load(&self) -> WorkerLoad {
        self.peer.load()
    }

    fn ledger(&self) -> Option<LedgerNumber> {
        self.peer.ledger()
    }

    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure> {
        let flight = self.peer.open(Begin::Start(Box::new(call)))?;
        reader::opened(&self.peer, flight).await
    }

    async fn attach(
        &self,
        call: CallId,
        after: u64,
        trace: Option<&TraceContext>,
    ) -> Result<RunningCall, CallFailure> {
        let flight = (self.peer).open(Begin::Attach(call, after, trace.cloned()))?;
        reader::opened(&self.peer, flight).await
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        let lost = || RpcError::internal(format!("worker {} cannot be reached", self.peer.id));
        let answer = self.peer.subscribe(uri);
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    async fn unsubscribe(&self, uri: &str) {
        self.peer.unsubscribe(uri);
    }

    async fn end_session(&self, session: &SessionId) {
        self.peer.end_session(session);
    }
}
