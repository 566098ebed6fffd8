//! The worker's side of worker links: any [`Worker`] served to nodes elsewhere.
//!
//! | | |
//! |---|---|
//! | `connect` | hello and welcome |
//! | `run` | a link's life: dialled, driven, dialled again |
//! | `drive` | what arrives on a link, and what the worker has to say by itself |
//! | `served_calls` | what is read of calls by a link, which ends with it |
//! | `served_call` | one reader of one call |
//! | `stopping` | calls that have ended on a link, whose tools have not stopped |
//! | `chores` | what is done beside calls, whatever becomes of the link: subscriptions, ends of sessions |
//!
//! One task drives a link with all its calls: looking at a call costs less than waking a task for it.

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
use subscriptions::Subscriptions;

/// A worker of this process with what its links share; a cheap handle. Make one for each worker, once:
/// nodes take another one for a worker that has forgotten its calls.
#[derive(Clone)]
pub struct JoiningWorker {
    joining: Arc<Joining>,
}

struct Joining {
    worker: Arc<dyn Worker>,
    /// Tells this runtime from one that had the same name before.
    incarnation: u64,
    subscriptions: Subscriptions,
    presence: PresencePorts,
}

impl Joining {
    fn id(&self) -> WorkerId {
        self.worker.announcement().borrow().worker.clone()
    }
}

impl JoiningWorker {
    /// Prepares a worker for being linked.
    pub fn new(worker: Arc<dyn Worker>) -> Self {
        Self::with_presence(worker, PresencePorts::default())
    }

    /// As [`new`](Self::new), with the presence ports of its process.
    pub fn with_presence(worker: Arc<dyn Worker>, presence: PresencePorts) -> Self {
        let ledger = worker.ledger();
        Self {
            joining: Arc::new(Joining {
                worker,
                incarnation: ledger.map_or_else(rand::random, |ledger| ledger.incarnation),
                subscriptions: Subscriptions::default(),
                presence,
            }),
        }
    }
}

/// How a [`WorkerJoin`] is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinState {
    /// Whether the link is up.
    pub connected: bool,
    /// The node at the address, once it has been reached.
    pub node: Option<NodeId>,
    /// Why the last attempt or link failed; kept until the next one succeeds.
    pub last_error: Option<String>,
}

/// A worker's link to one node address, redialled until it is stopped or dropped.
///
/// Calls go on while the link is broken; whoever reads them attaches to them by the next one, or by a link of another
/// node.
pub struct WorkerJoin {
    state: watch::Sender<JoinState>,
    nodes: watch::Sender<Vec<NodeInfo>>,
    leave: watch::Sender<Option<Instant>>,
    /// Whether all calls had ended, once it is over.
    over: watch::Receiver<Option<bool>>,
    stop: CancellationToken,
}

impl WorkerJoin {
    /// Begins to link `worker` to the node at `address` (`host:port`).
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

    /// How the link is; the receiver tells of changes.
    pub fn state(&self) -> watch::Receiver<JoinState> {
        self.state.subscribe()
    }

    /// The nodes that this node has told of; empty until it has.
    pub fn nodes(&self) -> watch::Receiver<Vec<NodeInfo>> {
        self.nodes.subscribe()
    }

    /// Leaves the node: says at once that nothing new should be started, lets the worker's calls end until
    /// `deadline`, says goodbye, and stops. Whether all calls of this node had ended. Calls of other nodes
    /// count: their sessions may come to this one, which then goes on with them.
    ///
    /// Cancellation safe: dropped, the leaving goes on until the join is dropped.
    pub async fn leave(&self, deadline: Instant) -> bool {
        self.leave.send_replace(Some(deadline));
        let mut over = self.over.clone();
        let idle = over.wait_for(Option::is_some).await;
        idle.is_ok_and(|idle| *idle == Some(true))
    }

    /// Stops at once, without a goodbye. The node waits for the worker to come back, for a while.
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for WorkerJoin {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
