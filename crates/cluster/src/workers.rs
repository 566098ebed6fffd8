mod link;
mod plan;
mod round;

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use serde::Serialize;
use shoal_ports::{ClusterSettings, settings};
use shoal_rpc::{JoiningWorker, LinkConfig};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::link::{Links, RpcLinks};
use self::plan::Roll;
use self::round::JoinRound;
use crate::members::Members;

settings! {
    /// Settings for joining workers to nodes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct JoinConfig {
        /// The cluster. Workers dial the addresses of `join` first, and connected nodes report the others.
        pub cluster: ClusterSettings = ClusterSettings::default(),
        /// How long workers dial an unreachable node that other nodes do not report.
        pub forget_after: Duration = Duration::from_secs(15),
        /// How long all nodes may be unreachable before workers dial `join` again.
        pub reseed_after: Duration = Duration::from_secs(5),
    }
}

/// Links each worker of this process to every node. Nodes report other nodes; in a process that is a node, [`Members`]
/// does too. Dropping this ends the links without a goodbye.
pub struct WorkerJoins {
    config: JoinConfig,
    link: LinkConfig,
    members: Option<Members>,
    kept: Mutex<Vec<RunningRound>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

struct RunningRound {
    round: Arc<JoinRound>,
    stop: CancellationToken,
}

/// A handle to an [added](WorkerJoins::add) worker, which does not keep the worker linked.
#[derive(Clone)]
pub struct JoinedWorker(Weak<JoinRound>);

/// A worker's link to a node, for `/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JoinStatus {
    /// The dialled address.
    pub address: String,
    /// The node's ID, once reached.
    pub node: Option<String>,
    /// Whether the link is up.
    pub connected: bool,
    /// Why the last dial or link failed.
    pub last_error: Option<String>,
}

impl WorkerJoins {
    /// Makes joins without workers. A node passes its `members`, and calls its own workers directly.
    pub fn new(config: JoinConfig, link: LinkConfig, members: Option<Members>) -> Self {
        Self {
            config,
            link,
            members,
            kept: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Links a worker to every node.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn add(&self, worker: JoiningWorker) -> JoinedWorker {
        self.keep(Box::new(RpcLinks::new(worker, self.link.clone())))
    }

    fn keep(&self, links: Box<dyn Links>) -> JoinedWorker {
        let members = self.members.as_ref();
        let me = members.map(|members| members.me().clone());
        let (round, stop) = (JoinRound::new(links), self.stop.child_token());
        let joined = Arc::downgrade(&round);
        let roll = Roll::new(self.config.clone(), me);
        let told = members.map(Members::announced);
        let going = round.clone().keep(roll, told);
        (self.tasks).spawn(stop.clone().run_until_cancelled_owned(going));
        self.kept.lock().push(RunningRound { round, stop });
        JoinedWorker(joined)
    }

    /// Makes one worker [leave](Self::leave) every node for good.
    pub async fn remove(&self, worker: &JoinedWorker, deadline: Instant) {
        let Some(leaver) = worker.0.upgrade() else {
            return;
        };
        leaver.leave(deadline).await;
        self.kept.lock().retain(|kept| {
            let stays = !Arc::ptr_eq(&kept.round, &leaver);
            if !stays {
                kept.stop.cancel();
            }
            stays
        });
    }

    fn rounds(&self) -> Vec<Arc<JoinRound>> {
        let kept = self.kept.lock();
        kept.iter().map(|kept| kept.round.clone()).collect()
    }

    /// Returns each worker's links, in the order of [`add`](Self::add).
    pub fn status(&self) -> Vec<Vec<JoinStatus>> {
        let rounds = self.rounds();
        rounds.iter().map(|round| round.status()).collect()
    }

    /// Whether each worker has a link to every known node; `None` if a worker has no link.
    pub fn is_complete(&self) -> Option<bool> {
        let mut complete = true;
        for links in self.status() {
            if !links.iter().any(|link| link.connected) {
                return None;
            }
            complete &= links.iter().all(|link| link.connected);
        }
        Some(complete)
    }

    /// Makes all workers leave every node: no new calls start, and running calls may end until `deadline`. Nodes that
    /// appear meanwhile get links too, because sessions with running calls may move there. Returns whether all calls
    /// ended in time.
    ///
    /// # Cancel safety
    /// If the future is dropped, the links stay until the `WorkerJoins` is dropped.
    pub async fn leave(&self, deadline: Instant) -> bool {
        let rounds = self.rounds();
        let leaving = rounds.iter().map(|round| round.leave(deadline));
        let ended = join_all(leaving).await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        ended.into_iter().all(|ended| ended)
    }
}

impl Drop for WorkerJoins {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests;
