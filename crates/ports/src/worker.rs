use std::sync::Arc;

use async_trait::async_trait;
use shoal_protocol::{RawJson, RpcError, TraceContext};
use tokio::sync::{broadcast, watch};

use crate::{
    Call, CallFailure, CallId, Epoch, LedgerNumber, OwnLists, PoolCatalog, RunningCall, SessionId,
    WorkerId,
};

/// Runs the calls of one pool.
///
/// A worker runs each call once, also without a reader, and keeps finished calls for a bounded
/// time. It may drop a finished call that was [acknowledged](Self::acknowledge), or that is
/// repeatable, was delivered and asked no questions.
#[async_trait]
pub trait Worker: Send + Sync + 'static {
    /// Returns the worker's description, updated in the receiver and repeated after a reconnection.
    /// A worker that cannot accept calls announces no catalog.
    fn announcement(&self) -> watch::Receiver<Announcement>;

    /// Reports updates of [subscribed](Self::subscribe) resources. A receiver that lags must assume that all resources
    /// changed.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// Returns the callers with own lists, whose list methods the worker answers as calls, in one
    /// page.
    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        watch::channel(OwnLists::default()).1
    }

    /// Returns the current load.
    fn load(&self) -> WorkerLoad;

    /// Counts the calls that a reader may still want, including recently finished ones.
    fn open_calls(&self) -> usize {
        let load = self.load();
        load.running + load.queued
    }

    /// Returns the current ledger number, which may lag behind; `None` without a ledger.
    fn ledger(&self) -> Option<LedgerNumber> {
        None
    }

    /// Adds an expected call to the [load](Self::load) until the guard is dropped. `None` if the load is exact without
    /// this.
    fn expect(&self) -> Option<Expected> {
        None
    }

    /// Starts a call, or attaches to a known one from its beginning.
    ///
    /// The worker remembers journaled calls under its latest [ledger](Self::ledger) numbers, and
    /// does not run a call that it accepted before or may have forgotten. `ledger` is the number
    /// from when the call was bound, or from before this attempt if it is not bound. A refusal is
    /// final for this number; without a number, it is not final.
    ///
    /// If the connection breaks before the worker confirms, the call may run. Then its events end
    /// without `Finished`, and it has no [reader](crate::CallControl::reader): [start it
    /// again](Self::start_again).
    ///
    /// # Errors
    /// `Overloaded` or `NotExecuted` if the call was not executed; `OutcomeUnknown` if it may have
    /// run; `Superseded` if the worker knows a later session owner.
    async fn start(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure>;

    /// Starts a call that may have reached the worker before.
    ///
    /// # Errors
    /// As for [`start`](Self::start). A failure to send counts as a broken connection.
    async fn start_again(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        self.start(call, ledger).await
    }

    /// Attaches to a known call from its beginning, and starts no call. For calls that come after the worker's goodbye.
    ///
    /// # Errors
    /// As for [`start`](Self::start), and final in the same way. `NotExecuted` if the worker never had the call.
    async fn start_known(
        &self,
        _call: Call,
        _ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        Err(CallFailure::worker_left())
    }

    /// Returns the worker if it runs in this process.
    fn here(&self) -> Option<&dyn WorkerHere> {
        None
    }

    /// Attaches to a call and replaces its reader. A [returning reader](Attach::reader) does not
    /// replace a newer one, but [is replaced](crate::CallControl::is_replaced).
    ///
    /// # Errors
    /// `OutcomeUnknown` if the worker does not know the call; `Superseded` if it knows a later
    /// session owner. Broken connections are as for [`start`](Self::start).
    async fn attach(&self, attach: Attach) -> Result<RunningCall, CallFailure>;

    /// Allows dropping a call's stored result. The worker still remembers the id.
    fn acknowledge(&self, _call: CallId) {}

    /// Subscribes to a resource's [updates](Self::resource_updates). A second subscription has no effect.
    ///
    /// # Errors
    /// The backend's refusal.
    async fn subscribe(&self, uri: &str) -> Result<(), RpcError>;

    /// Ends the subscription to a resource.
    async fn unsubscribe(&self, uri: &str);

    /// Ends a session: stops its calls and refuses late ones.
    async fn end_session(&self, session: &SessionId);
}

/// A request to attach to a call.
#[derive(Clone, Debug)]
pub struct Attach {
    /// The call's id.
    pub call: CallId,
    /// The reader's last event; 0 for none.
    pub after: u64,
    /// A returning [reader](crate::CallControl::reader)'s id.
    pub reader: Option<u64>,
    /// The owner's epoch, as in [`Call::epoch`].
    pub epoch: Option<Epoch>,
    /// The reader's span.
    pub trace: Option<TraceContext>,
}

impl Attach {
    /// Makes the request of a new reader that continues after the event `after`.
    #[must_use]
    pub fn new(call: CallId, after: u64) -> Self {
        Self {
            call,
            after,
            reader: None,
            epoch: None,
            trace: None,
        }
    }
}

/// Counts an expected call until dropped.
pub type Expected = Box<dyn Send + Sync>;

/// A worker in this process.
pub trait WorkerHere {
    /// Starts a call without waiting. Call this within a Tokio runtime.
    ///
    /// The tool may run until it first waits. A call that ends by then has [ended](crate::CallEvents::ended) when this
    /// returns.
    ///
    /// # Errors
    /// As for [`Worker::start`], which the caller then tries instead.
    fn start_now(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure>;
}

/// The workers that calls can run on.
pub trait WorkerSet: Send + Sync + 'static {
    /// Adds or replaces a worker by its id. Running calls continue.
    fn add(&self, worker: Arc<dyn Worker>);

    /// Removes a worker from the choice for new calls.
    fn remove(&self, worker: &WorkerId);
}

/// A worker's description of itself.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The worker's id.
    pub worker: WorkerId,
    /// The worker's pool.
    pub pool: Arc<str>,
    /// The catalog, once the backend is ready.
    pub catalog: Option<Arc<PoolCatalog>>,
    /// Why the worker is not ready, or which part of it is degraded.
    pub detail: Option<String>,
}

impl Announcement {
    /// The [detail](Self::detail) of a worker during its first start.
    pub const STARTING: &str = "starting";
    /// The detail of a leaving worker.
    pub const LEAVING: &str = "the worker is leaving";
    /// The detail of a removed pool, for which nodes need not wait.
    pub const REMOVED: &str = "the pool was removed from the worker's configuration";

    /// Whether the worker is leaving.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        let leaving = |detail| [Self::LEAVING, Self::REMOVED].contains(&detail);
        self.catalog.is_none() && self.detail.as_deref().is_some_and(leaving)
    }

    /// Whether the pool is being removed.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.catalog.is_none() && self.detail.as_deref() == Some(Self::REMOVED)
    }
}

/// An update of a resource, as reported by a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceUpdated {
    /// The resource's URI.
    pub uri: String,
    /// The parameters of `notifications/resources/updated`.
    pub params: RawJson,
}

/// The load of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerLoad {
    /// Running calls.
    pub running: usize,
    /// Waiting calls.
    pub queued: usize,
    /// Calls that can run at once; 0 while disconnected.
    pub capacity: usize,
}
