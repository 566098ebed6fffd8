//! The seam between the dispatcher and a worker, in this process or another.

use std::sync::Arc;

use async_trait::async_trait;
use shoal_protocol::{RawJson, RpcError, TraceContext};
use tokio::sync::{broadcast, watch};

use crate::{
    Call, CallFailure, CallId, Epoch, LedgerNumber, OwnLists, PoolCatalog, RunningCall, SessionId,
    WorkerId,
};

/// A worker as the dispatcher sees it.
///
/// A worker keeps a running call whoever listens, and a finished one for a bounded time, so that both
/// can be attached to. A finished call that is safe to repeat, asked nothing and was delivered need not be
/// kept, nor one that was [acknowledged](Self::acknowledge). A worker never repeats a call.
#[async_trait]
pub trait Worker: Send + Sync + 'static {
    /// What the worker offers and how it is; the receiver tells of changes. A worker that cannot take
    /// calls announces no catalog. One that can be reached again says the same once more.
    fn announcement(&self) -> watch::Receiver<Announcement>;

    /// What its backend reports of resources that this process has [subscribed](Self::subscribe) to. A receiver that is told that it has
    /// lagged is to assume that all of them have changed.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// Who sees other lists at this worker than it has announced. It answers the list methods of these callers as calls, each
    /// with all pages in one. By default nobody.
    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        watch::channel(OwnLists::default()).1
    }

    /// How busy it is now.
    fn load(&self) -> WorkerLoad;

    /// Calls that somebody may yet come for: those of its [`load`](Self::load), those that wait for their clients without
    /// a place, and for a while those that have ended and that nobody has read to the end.
    fn open_calls(&self) -> usize {
        let load = self.load();
        load.running + load.queued
    }

    /// How far its ledger is, for whoever binds a journaled call to it; `None` where it keeps no numbers. What is
    /// known here may be behind, never ahead.
    fn ledger(&self) -> Option<LedgerNumber> {
        None
    }

    /// Counts a call among its [load](Self::load) that this node has planned and another one starts, until what is returned
    /// is dropped. `None` where the load is known anyway.
    fn expect(&self) -> Option<Expected> {
        None
    }

    /// Runs a call; a known id attaches from the beginning.
    ///
    /// A worker remembers for the last numbers of its [ledger](Self::ledger) which journaled calls it took and which it
    /// refused: a call that it took is not run again, and a refusal is final for the number that the call was bound
    /// under. A call that was bound under a number of which it may have forgotten something is not run.
    ///
    /// Where the way to the worker breaks before its word is heard, the call's events end without `Finished`, and its
    /// control knows no [reader](crate::CallControl::reader): it may run. [Starting it again](Self::start_again) finds that
    /// out.
    ///
    /// # Errors
    /// `Overloaded` when its queue is full, `NotExecuted` when it cannot run anything now; in both cases
    /// nothing was executed. `OutcomeUnknown` when the call may have run before. `Superseded` when the worker has heard of a
    /// later owner of the call's session; nothing has changed then.
    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure>;

    /// Runs a call that the worker may have, or have had, since nothing was heard of an earlier start.
    ///
    /// # Errors
    /// The worker's own word, as of [`start`](Self::start). That it was not sent to the worker is told as a broken way.
    async fn start_again(&self, call: Call) -> Result<RunningCall, CallFailure> {
        self.start(call).await
    }

    /// The worker itself, if it is in this process, and need not be waited for.
    fn here(&self) -> Option<&dyn WorkerHere> {
        None
    }

    /// Attaches to a call, and takes it over from whoever reads it. A reader that [comes back](Attach::reader) takes nothing
    /// over: if another one has come meanwhile, the events end, and the control
    /// [is replaced](crate::CallControl::is_replaced). A way that breaks is told as by [`start`](Self::start).
    ///
    /// # Errors
    /// `OutcomeUnknown` when the worker does not know the call (any more); `Superseded` when it has heard of a later owner of
    /// the call's session.
    async fn attach(&self, attach: Attach) -> Result<RunningCall, CallFailure>;

    /// The end of a call that must not run twice is safe where it was meant for: it need not be kept any longer. Its id is.
    fn acknowledge(&self, _call: CallId) {}

    /// Asks the backend to report updates of a resource (idempotent), as [`Self::resource_updates`].
    ///
    /// # Errors
    /// The backend's refusal.
    async fn subscribe(&self, uri: &str) -> Result<(), RpcError>;

    /// Ends [`Worker::subscribe`].
    async fn unsubscribe(&self, uri: &str);

    /// Tells the worker that a legacy session is over: its calls that run are stopped, what comes late for it is refused, and the
    /// backend can let go of what it holds for it.
    async fn end_session(&self, session: &SessionId);
}

/// Who attaches to what.
#[derive(Clone, Debug)]
pub struct Attach {
    /// The call.
    pub call: CallId,
    /// The last of its events that was seen; 0 for none.
    pub after: u64,
    /// The name of the [reader](crate::CallControl::reader) that comes back after the way broke; `None` for a new one.
    pub reader: Option<u64>,
    /// The epoch of the session's owner, as in [`Call::epoch`].
    pub epoch: Option<Epoch>,
    /// The span of whoever attaches, which need not be of the trace that the call was started in.
    pub trace: Option<TraceContext>,
}

impl Attach {
    /// A new reader, from after this event.
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

/// A call that a worker is about to get from another node.
pub type Expected = Box<dyn Send + Sync>;

/// A worker in this process.
pub trait WorkerHere {
    /// As [`Worker::start`], without waiting. To be called in a runtime.
    ///
    /// The tool may have its first turn within this, until it waits for something, and a call that ends in it has
    /// [ended](crate::CallEvents::ended) when this returns.
    ///
    /// # Errors
    /// As [`Worker::start`]; a refusal does not count as one, since the call is started after it.
    fn start_now(&self, call: Call) -> Result<RunningCall, CallFailure>;
}

/// Where workers come in and leave.
pub trait WorkerSet: Send + Sync + 'static {
    /// Takes a worker in. One of the same id is replaced; its running calls go on.
    fn add(&self, worker: Arc<dyn Worker>);

    /// Lets a worker go; nothing new is started on it.
    fn remove(&self, worker: &WorkerId);
}

/// What a worker says of itself.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// Its name.
    pub worker: WorkerId,
    /// The pool that it belongs to.
    pub pool: Arc<str>,
    /// What the pool offers; `None` while the backend is not ready.
    pub catalog: Option<Arc<PoolCatalog>>,
    /// Why it is not ready, or what is degraded, for `/readyz` and logs.
    pub detail: Option<String>,
}

impl Announcement {
    /// The [detail](Self::detail) of a worker whose backend is being started for the first time, and has not failed yet.
    pub const STARTING: &str = "starting";
    /// The same of a worker that finishes its calls and takes no more.
    pub const LEAVING: &str = "the worker is leaving";
    /// The same where its pool is not to be there any more: once all its workers say so, nobody waits for another one.
    pub const REMOVED: &str = "the pool was removed from the worker's configuration";

    /// Whether the worker has said that it leaves.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        let leaving = |detail| [Self::LEAVING, Self::REMOVED].contains(&detail);
        self.catalog.is_none() && self.detail.as_deref().is_some_and(leaving)
    }

    /// Whether it has said that its pool is not to be there any more.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.catalog.is_none() && self.detail.as_deref() == Some(Self::REMOVED)
    }
}

/// A resource has changed, as a worker tells the processes that are linked to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceUpdated {
    /// Its URI.
    pub uri: String,
    /// The parameters of `notifications/resources/updated`, untouched.
    pub params: RawJson,
}

/// How busy a worker is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerLoad {
    /// Calls running.
    pub running: usize,
    /// Calls waiting.
    pub queued: usize,
    /// Calls that can run at once; 0 while the worker cannot be reached.
    pub capacity: usize,
}
