//! The seam between the dispatcher and a worker.

use std::sync::Arc;

use async_trait::async_trait;
use shoal_protocol::{RawJson, RpcError, TraceContext};
use tokio::sync::{broadcast, watch};

use crate::{
    Call, CallFailure, CallId, Epoch, LedgerNumber, OwnLists, PoolCatalog, RunningCall, SessionId,
    WorkerId,
};

/// A worker.
///
/// It keeps running calls without a reader, and finished ones for a bounded time. It may drop a finished call that is
/// [acknowledged](Self::acknowledge), or repeatable, delivered and without questions. It runs each call once.
#[async_trait]
pub trait Worker: Send + Sync + 'static {
    /// The worker's state, and its changes. A worker has a catalog while it can take calls. A reconnected one announces
    /// itself again.
    fn announcement(&self) -> watch::Receiver<Announcement>;

    /// Reports updates of [subscribed](Self::subscribe) resources. A lagging receiver must assume that all changed.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// The callers with separate lists, whose list methods it answers as calls with all pages in one.
    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        watch::channel(OwnLists::default()).1
    }

    /// The current load.
    fn load(&self) -> WorkerLoad;

    /// The calls that a reader may still want, finished ones included for a while.
    fn open_calls(&self) -> usize {
        let load = self.load();
        load.running + load.queued
    }

    /// The ledger's position, which may lag; `None` without a ledger.
    fn ledger(&self) -> Option<LedgerNumber> {
        None
    }

    /// Counts a call that another node will start in the [load](Self::load), until the guard is dropped. `None` if the
    /// load is exact.
    fn expect(&self) -> Option<Expected> {
        None
    }

    /// Starts a call, or attaches to a known one from the beginning.
    ///
    /// The worker remembers the journaled calls under its latest [ledger](Self::ledger) numbers. It does not run again
    /// what it took or may have forgotten, and a refusal is final for the binding's number.
    ///
    /// If the connection breaks first, the call may run: its events end without `Finished`, and it has no
    /// [reader](crate::CallControl::reader). Then [start it again](Self::start_again).
    ///
    /// # Errors
    /// `Overloaded` or `NotExecuted` if the call was not executed; `OutcomeUnknown` if it may have run; `Superseded` if
    /// the worker knows a later session owner.
    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure>;

    /// Starts a call that may have reached the worker before.
    ///
    /// # Errors
    /// As for [`start`](Self::start). A failure to send looks like a broken connection.
    async fn start_again(&self, call: Call) -> Result<RunningCall, CallFailure> {
        self.start(call).await
    }

    /// The worker, if it is in this process.
    fn here(&self) -> Option<&dyn WorkerHere> {
        None
    }

    /// Attaches to a call, replacing its reader. A [returning reader](Attach::reader) does not replace a newer one: its
    /// control [is replaced](crate::CallControl::is_replaced).
    ///
    /// # Errors
    /// `OutcomeUnknown` if the worker does not know the call; `Superseded` if it knows a later session owner. A broken
    /// connection looks as for [`start`](Self::start).
    async fn attach(&self, attach: Attach) -> Result<RunningCall, CallFailure>;

    /// Allows the worker to drop a stored result. It keeps the id.
    fn acknowledge(&self, _call: CallId) {}

    /// Subscribes to [updates](Self::resource_updates). Idempotent.
    ///
    /// # Errors
    /// The backend's refusal.
    async fn subscribe(&self, uri: &str) -> Result<(), RpcError>;

    /// Ends [`Worker::subscribe`].
    async fn unsubscribe(&self, uri: &str);

    /// Ends a session: stops its calls and refuses late ones.
    async fn end_session(&self, session: &SessionId);
}

/// A request to attach to a call.
#[derive(Clone, Debug)]
pub struct Attach {
    /// The call.
    pub call: CallId,
    /// The last event seen; 0 for the beginning.
    pub after: u64,
    /// The id of a returning [reader](crate::CallControl::reader).
    pub reader: Option<u64>,
    /// The session owner's epoch, as in [`Call::epoch`].
    pub epoch: Option<Epoch>,
    /// The reader's span.
    pub trace: Option<TraceContext>,
}

impl Attach {
    /// A new reader, starting after this event.
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

/// The guard of an expected call.
pub type Expected = Box<dyn Send + Sync>;

/// A worker in this process.
pub trait WorkerHere {
    /// Starts a call without waiting. Call within a runtime.
    ///
    /// The tool may run until it waits. A call that ends by then has [ended](crate::CallEvents::ended) on return.
    ///
    /// # Errors
    /// As [`Worker::start`], which the caller then tries.
    fn start_now(&self, call: Call) -> Result<RunningCall, CallFailure>;
}

/// A set of workers.
pub trait WorkerSet: Send + Sync + 'static {
    /// Adds or replaces a worker. Running calls continue.
    fn add(&self, worker: Arc<dyn Worker>);

    /// Removes a worker for new calls.
    fn remove(&self, worker: &WorkerId);
}

/// A worker's description of itself.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The id.
    pub worker: WorkerId,
    /// The pool.
    pub pool: Arc<str>,
    /// The catalog, once the backend is ready.
    pub catalog: Option<Arc<PoolCatalog>>,
    /// Why it is not ready, or what is degraded.
    pub detail: Option<String>,
}

impl Announcement {
    /// The [detail](Self::detail) of a first start.
    pub const STARTING: &str = "starting";
    /// The detail while the worker finishes its calls.
    pub const LEAVING: &str = "the worker is leaving";
    /// The detail of a removed pool, for which nodes need not wait.
    pub const REMOVED: &str = "the pool was removed from the worker's configuration";

    /// Whether the worker is leaving.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        let leaving = |detail| [Self::LEAVING, Self::REMOVED].contains(&detail);
        self.catalog.is_none() && self.detail.as_deref().is_some_and(leaving)
    }

    /// Whether the worker's pool is being removed.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.catalog.is_none() && self.detail.as_deref() == Some(Self::REMOVED)
    }
}

/// A resource update from a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceUpdated {
    /// The URI.
    pub uri: String,
    /// The parameters of `notifications/resources/updated`.
    pub params: RawJson,
}

/// The load of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerLoad {
    /// Calls running.
    pub running: usize,
    /// Calls waiting.
    pub queued: usize,
    /// Calls that can run at once; 0 while disconnected.
    pub capacity: usize,
}
