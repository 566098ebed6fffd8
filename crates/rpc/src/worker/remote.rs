use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{
    Announcement, Attach, Call, CallFailure, CallId, Expected, LedgerNumber, OwnLists,
    ResourceUpdated, RunningCall, SessionId, Worker, WorkerLoad,
};
use shoal_protocol::RpcError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::link::UnsentFrame;
use super::peer::WorkerPeer;
use super::reader;
use crate::convert::call::{attach_out, call_out};
use crate::proto::worker::v1::Start;
use crate::proto::worker::v1::node_frame::Frame;

const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A worker in another process.
///
/// It may have no link for up to [`LinkConfig::rejoin`](crate::LinkConfig::rejoin). Then
/// [`load`](Worker::load) reports a capacity of 0. Running calls continue at the worker, and their
/// readers attach again.
///
/// # Cancel safety
/// Dropping the future of [`start`](Worker::start) detaches from the call, which may still run.
pub struct RemoteWorker {
    peer: Arc<WorkerPeer>,
}

impl RemoteWorker {
    pub(super) fn new(peer: Arc<WorkerPeer>) -> Self {
        Self { peer }
    }

    /// If the frame cannot be sent, returns a call whose connection is lost.
    async fn open_or_lose(
        &self,
        frame: impl FnOnce(u64) -> Frame,
    ) -> Result<RunningCall, CallFailure> {
        let peer = &self.peer;
        let opened = peer.link().and_then(|link| {
            let flight = link.open(peer.number(), frame).ok()?;
            Some((link, flight))
        });
        match opened {
            Some((link, flight)) => reader::opened(link, flight).await,
            None => Ok(RunningCall::lost(peer.id.clone())),
        }
    }
}

/// Until dropped, counts a call that another node starts at the worker.
struct ExpectedCall(Arc<WorkerPeer>);

impl Drop for ExpectedCall {
    fn drop(&mut self) {
        self.0.gauge.ended();
    }
}

#[async_trait]
impl Worker for RemoteWorker {
    fn announcement(&self) -> watch::Receiver<Announcement> {
        self.peer.announcement.subscribe()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.peer.updates.subscribe()
    }

    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        self.peer.own_lists.subscribe()
    }

    fn load(&self) -> WorkerLoad {
        self.peer.load()
    }

    fn ledger(&self) -> Option<LedgerNumber> {
        self.peer.ledger()
    }

    fn expect(&self) -> Option<Expected> {
        self.peer.gauge.started();
        Some(Box::new(ExpectedCall(Arc::clone(&self.peer))))
    }

    async fn start(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        let peer = &self.peer;
        let bound = call.binding.is_some();
        let away = || {
            let reason = format!("worker {} cannot be reached", peer.id);
            unsent(bound, CallFailure::NotExecuted { reason })
        };
        let link = peer.link().ok_or_else(away)?;
        if link.outbox.is_full() {
            let backed_up = CallFailure::Overloaded {
                reason: format!("the link to worker {} is backed up", peer.id),
                retry_after: RETRY_AFTER,
            };
            return Err(unsent(bound, backed_up));
        }
        let flight = link.open(peer.number(), |flight| start_frame(flight, &call, ledger));
        let flight = flight.map_err(|why| match why {
            UnsentFrame::Over => away(),
            UnsentFrame::TooLong(too_long) => {
                let reason = too_long.to_string();
                unsent(bound, CallFailure::NotExecuted { reason })
            }
        })?;
        reader::opened(link, flight).await
    }

    async fn start_again(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        self.open_or_lose(|flight| start_frame(flight, &call, ledger))
            .await
    }

    async fn attach(&self, attach: Attach) -> Result<RunningCall, CallFailure> {
        let frame = |flight| Frame::Attach(attach_out(flight, &attach));
        self.open_or_lose(frame).await
    }

    fn acknowledge(&self, call: CallId) {
        self.peer.acknowledge(call);
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

/// Only the worker may refuse a bound call.
fn unsent(bound: bool, failure: CallFailure) -> CallFailure {
    match failure {
        CallFailure::NotExecuted { reason } | CallFailure::Overloaded { reason, .. } if bound => {
            CallFailure::WorkerAway { reason }
        }
        failure => failure,
    }
}

fn start_frame(flight: u64, call: &Call, ledger: Option<LedgerNumber>) -> Frame {
    let call = Some(call_out(call, ledger, Instant::now()));
    Frame::Start(Box::new(Start { flight, call }))
}
