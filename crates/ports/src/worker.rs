//! The seam between the dispatcher and a worker, in this process or another.

use std::sync::Arc;

use async_trait::async_trait;
use shoal_protocol::{RawJson, RpcError, TraceContext};
use tokio::sync::{broadcast, watch};

use crate::{
    Call, CallFailure, CallId, Epoch, LedgerNumber, OwnLists, PoolCatalog, RunningCall, SessionId,
    WorkerId,
};

/// A worker, as seen by the dispatcher.
///
/// A worker keeps running calls without a reader, and finished ones for a bounded time, so that readers can attach to
/// both. It may drop a finished call that is [acknowledged](Self::acknowledge), or that is safe to repeat, asked no
/// questions and was delivered. It runs each call once.
#[async_trait]
pub trait Worker: Send + Sync + 'static {
    /// The worker's catalog and health. The receiver reports changes. A worker that cannot take calls has no catalog,
    /// and a reconnected one announces itself again.
    fn announcement(&self) -> watch::Receiver<Announcement>;

    /// Reports updates of resources that this process is [subscribed](Self::subscribe) to. A receiver that has lagged
    /// must assume that all of them changed.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// The callers with separate lists at this worker, which answers their list methods as calls with all pages in one.
    /// Empty by default.
    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        watch::channel(OwnLists::default()).1
    }

    /// The current load.
    fn load(&self) -> WorkerLoad;

    /// The calls that a reader may still want: running, queued and parked ones, and for a while finished ones that were
    /// not read to the end.
    fn open_calls(&self) -> usize {
        let load = self.load();
        load.running + load.queued
    }

    /// The ledger's position, for binding journaled calls; `None` without a ledger. May lag behind the worker.
    fn ledger(&self) -> Option<LedgerNumber> {
        None
    }

    /// Adds a call that another node will start to the [load](Self::load), until the guard is dropped. `None` if the
    /// load is known exactly.
    fn expect(&self) -> Option<Expected> {
        None
    }

    /// Starts a call. Starting a known id attaches from the beginning.
    ///
    /// The worker remembers the journaled calls under its latest [ledger](Self::ledger) numbers. It refuses to run
    /// again what it took, and what it may have forgotten. A refusal is final for the number under which the call was
    /// bound.
    ///
    /// If the connection breaks before the worker responds, the call may run: its events end without `Finished`, and
    /// its control has no [reader](crate::CallControl::reader). [Start it again](Self::start_again) to find out.
    ///
    /// # Errors
    /// `Overloaded` if the queue is full and `NotExecuted` if the worker cannot run calls: the call was not executed.
    /// `OutcomeUnknown` if it may have run before. `Superseded`, without a change, if the worker knows a later owner of
    /// the session.
    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure>;

    /// Starts a call that an earlier start may have reached.
    ///
    /// # Errors
    /// The worker's, as for [`start`](Self::start). A failure to send looks like a broken connection.
    async fn start_again(&self, call: Call) -> Result<RunningCall, CallFailure> {
        self.start(call).await
    }

    /// The worker itself, if it is in this process and answers without waiting.
    fn here(&self) -> Option<&dyn WorkerHere> {
        None
    }

    /// Attaches to a call and takes it over from its current reader. A [returning reader](Attach::reader) does not take
    /// over from a newer one: its events end, and its control [is replaced](crate::CallControl::is_replaced). A broken
    /// connection looks as for [`start`](Self::start).
    ///
    /// # Errors
    /// `OutcomeUnknown` if the worker does not know the call; `Superseded` if it knows a later owner of the session.
    async fn attach(&self, attach: Attach) -> Result<RunningCall, CallFailure>;

    /// Tells the worker that the end of a run-once call is stored. It may drop the result but keeps the id.
    fn acknowledge(&self, _call: CallId) {}

    /// Subscribes to a resource's [updates](Self::resource_updates). Idempotent.
    ///
    /// # Errors
    /// The backend's refusal.
    async fn subscribe(&self, uri: &str) -> Result<(), RpcError>;

    /// Ends [`Worker::subscribe`].
    async fn unsubscribe(&self, uri: &str);

    /// Ends a legacy session: the worker stops its running calls, refuses late ones and releases the backend's
    /// resources.
    async fn end_session(&self, session: &SessionId);
}

/// A request to attach to a call.
#[derive(Clone, Debug)]
pub struct Attach {
    /// The call.
    pub call: CallId,
    /// The last event seen; 0 for the beginning.
    pub after: u64,
    /// The id of a returning [reader](crate::CallControl::reader); `None` for a new one.
    pub reader: Option<u64>,
    /// The epoch of the session's owner, as in [`Call::epoch`].
    pub epoch: Option<Epoch>,
    /// The reader's span, which may be in another trace than the call.
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

/// The guard of a call that another node will start.
pub type Expected = Box<dyn Send + Sync>;

/// A worker in this process.
pub trait WorkerHere {
    /// Starts a call without waiting. Call this within a runtime.
    ///
    /// The tool may run until it first waits. A call that ends by then has [ended](crate::CallEvents::ended) when this
    /// returns.
    ///
    /// # Errors
    /// As [`Worker::start`], which the caller then tries; a refusal does not count in metrics.
    fn start_now(&self, call: Call) -> Result<RunningCall, CallFailure>;
}

/// A set of workers.
pub trait WorkerSet: Send + Sync + 'static {
    /// Adds a worker. It replaces one with the same id, whose running calls continue.
    fn add(&self, worker: Arc<dyn Worker>);

    /// Removes a worker, so that no calls start on it.
    fn remove(&self, worker: &WorkerId);
}

/// A worker's description of itself.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The id.
    pub worker: WorkerId,
    /// The pool.
    pub pool: Arc<str>,
    /// The catalog; `None` while the backend is not ready.
    pub catalog: Option<Arc<PoolCatalog>>,
    /// Why the worker is not ready, or what is degraded, for `/readyz` and logs.
    pub detail: Option<String>,
}

impl Announcement {
    /// The [detail](Self::detail) while the backend starts for the first time.
    pub const STARTING: &str = "starting";
    /// The detail while the worker finishes its calls and takes no more.
    pub const LEAVING: &str = "the worker is leaving";
    /// The detail when the pool is being removed. Once all its workers say so, nodes stop waiting for another one.
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

/// A changed resource, as reported by a worker to linked processes.
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
    /// Calls that can run at once; 0 while the worker is disconnected.
    pub capacity: usize,
}
