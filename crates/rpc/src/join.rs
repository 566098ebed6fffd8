//! The worker's side of worker links.
//!
//! | | |
//! |---|---|
//! | `connect` | hello and welcome |
//! | `run` | the life of a link: dialled, driven, dialled again |
//! | `drive` | the frames that arrive, and the worker's own reports |
//! | `served_calls` | the calls that a link reads, until the link ends |
//! | `served_call` | one reader of one call |
//! | `stopping` | ended calls whose tools are still running |
//! | `chores` | subscriptions and ends of sessions, which outlive the link |
//!
//! One Tokio task drives a link with all its calls, because polling a call is cheaper than waking a task.

mod chores;
mod connect;
mod drive;
mod run;
mod served_call;
mod served_calls;
mod stopping;
mod subscriptions;

use std::sync::Arc;

use shoal_ports::{NodeId, NodeInfo, Worker, WorkerId};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::LinkConfig;
use crate::presence::PresencePorts;
use run::Runner;
use subscriptions::SubscriptionCounts;

/// A worker with the state that its links share; a cheap handle. Make only one for each worker,
/// because nodes treat a second one as a restart.
#[derive(Clone)]
pub struct JoiningWorker {
    joining: Arc<Joining>,
}

struct Joining {
    worker: Arc<dyn Worker>,
    /// Distinguishes this worker from an earlier one of the same name.
    incarnation: u64,
    subscriptions: SubscriptionCounts,
    presence: PresencePorts,
}

impl Joining {
    fn id(&self) -> WorkerId {
        self.worker.announcement().borrow().worker.clone()
    }
}

impl JoiningWorker {
    /// Prepares a worker for links to nodes.
    pub fn new(worker: Arc<dyn Worker>) -> Self {
        Self::with_presence(worker, PresencePorts::default())
    }

    /// Like [`new`](Self::new), with the presence ports of this process.
    pub fn with_presence(worker: Arc<dyn Worker>, presence: PresencePorts) -> Self {
        let ledger = worker.ledger();
        Self {
            joining: Arc::new(Joining {
                worker,
                incarnation: ledger.map_or_else(rand::random, |ledger| ledger.incarnation),
                subscriptions: SubscriptionCounts::default(),
                presence,
            }),
        }
    }
}

/// The state of a [`WorkerJoin`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinState {
    /// Whether the link is up.
    pub connected: bool,
    /// The node at the dialled address, once it has been reached.
    pub node: Option<NodeId>,
    /// Why the last dial or link failed, until a dial succeeds.
    pub last_error: Option<String>,
}

/// A worker's link to one node address. A broken link is dialled again until the worker leaves or the join is stopped
/// or dropped.
///
/// Calls outlive the link: their readers attach again through the next link or another node.
pub struct WorkerJoin {
    state: watch::Sender<JoinState>,
    nodes: watch::Sender<Vec<NodeInfo>>,
    leave: watch::Sender<Option<Instant>>,
    /// Whether all calls had ended; `None` until the worker has left or was stopped.
    over: watch::Receiver<Option<bool>>,
    stop: CancellationToken,
}

impl WorkerJoin {
    /// Starts to link `worker` to the node at `address` (`host:port`).
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(worker: &JoiningWorker, address: &str, config: LinkConfig) -> Self {
        let (over, is_over) = watch::channel(None);
        let join = Self {
            state: watch::Sender::default(),
            nodes: watch::Sender::default(),
            leave: watch::Sender::default(),
            over: is_over,
            stop: CancellationToken::new(),
        };
        let runner = Runner {
            joining: Arc::clone(&worker.joining),
            address: address.to_owned(),
            config,
            state: join.state.clone(),
            nodes: join.nodes.clone(),
            stop: join.stop.clone(),
            leave: join.leave.subscribe(),
        };
        tokio::spawn(async move {
            let idle = runner.run().await;
            over.send_replace(Some(idle));
        });
        join
    }

    /// Returns the link's state.
    pub fn state(&self) -> watch::Receiver<JoinState> {
        self.state.subscribe()
    }

    /// Returns the nodes that the linked node reports. Empty before the first report.
    pub fn nodes(&self) -> watch::Receiver<Vec<NodeInfo>> {
        self.nodes.subscribe()
    }

    /// Announces the worker's departure, keeps the link until all calls have ended or until `deadline`, says goodbye
    /// and stops. Returns whether all calls ended in time, including other nodes' calls, because their sessions may
    /// move to the linked node.
    ///
    /// # Cancel safety
    /// If the future is dropped, the worker still leaves, unless this join is dropped too.
    pub async fn leave(&self, deadline: Instant) -> bool {
        self.leave.send_replace(Some(deadline));
        let mut over = self.over.clone();
        let idle = over.wait_for(Option::is_some).await;
        idle.is_ok_and(|idle| *idle == Some(true))
    }

    /// Closes the link without a goodbye. The node waits up to [`LinkConfig::rejoin`] for the
    /// worker.
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for WorkerJoin {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
