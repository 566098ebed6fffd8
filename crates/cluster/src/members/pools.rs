//! Which pools there are, as nodes tell one another and the store remembers.
//!
//! A node that starts knows no pool until workers have dialled it. What the others know tells it what to wait for;
//! and where none is there to ask, because all have ended at once, what the store remembers.
//!
//! Where two pools offer the same thing, the nodes agree in the store on which of them keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Members, MembersInner, warn_of};

/// How long the store remembers pools: a cluster that was away for longer begins as a new one.
const REMEMBERED: Duration = Duration::from_secs(3_600);
/// How often they are written down when nothing has changed.
const REMIND: Duration = Duration::from_secs(600);

/// The pools whose tools this node knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolsHere {
    /// Their names.
    pub known: BTreeSet<String>,
    /// Whether it waits for none that others know.
    pub is_whole: bool,
    /// The names that several of them offer, each with the pool that keeps it here.
    pub contested: Names,
}

/// The pools that other nodes are known to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolsElsewhere {
    /// Those that other nodes know, or that were known before this node started.
    pub known: BTreeSet<String>,
    /// The names that several pools offer, each with the pool that keeps it, as the nodes have agreed.
    pub settled: Names,
}

/// Names, each with a pool.
type Names = BTreeMap<String, String>;

/// Is told what is known elsewhere.
type Elsewhere = dyn Fn(&PoolsElsewhere) + Send + Sync;

/// What is known of pools.
#[derive(Default)]
pub(super) struct Memory {
    here: OnceLock<Box<dyn Fn() -> PoolsHere + Send + Sync>>,
    elsewhere: OnceLock<Box<Elsewhere>>,
    /// What the store remembered when this node started, once it has said so.
    recalled: OnceLock<BTreeSet<String>>,
    /// What this node has announced.
    told: Mutex<BTreeSet<String>>,
    /// What this node has had the store remember, and when.
    written: Mutex<Option<(BTreeSet<String>, Instant)>>,
    /// The names that this node last had the nodes agree on, and when.
    named: Mutex<Option<(Names, Instant)>>,
    /// What they have agreed on.
    settled: Mutex<Names>,
}

impl Members {
    /// Asks `here` with each announcement which pools this node knows, and tells `elsewhere` what the others
    /// know: now, and whenever the nodes are read. Only the first call counts.
    pub fn share_pools(
        &self,
        here: impl Fn() -> PoolsHere + Send + Sync + 'static,
        elsewhere: impl Fn(&PoolsElsewhere) + Send + Sync + 'static,
    ) {
        let pools = &self.shared.pools;
        if pools.elsewhere.set(Box::new(elsewhere)).is_err() {
            return;
        }
        // First what is missing here: a node that waits for a pool does not know all of them.
        self.shared.tell_elsewhere();
        let _ = pools.here.set(Box::new(here));
        let shared = Arc::clone(&self.shared);
        let stop = shared.stop.clone();
        let mut views = self.watch();
        let follow = async move {
            while views.changed().await.is_ok() {
                shared.tell_elsewhere();
                shared.tell_pools().await;
            }
        };
        let follow = stop.run_until_cancelled_owned(follow);
        self.shared.tasks.spawn(async move {
            follow.await;
        });
    }
}

impl MembersInner {
    /// The pools whose tools this node knows.
    pub(super) fn pools_here(&self) -> PoolsHere {
        self.pools.here.get().map(|here| here()).unwrap_or_default()
    }

    fn tell_elsewhere(&self) {
        if let Some(elsewhere) = self.pools.elsewhere.get() {
            elsewhere(&self.pools_elsewhere());
        }
    }

    fn pools_elsewhere(&self) -> PoolsElsewhere {
        let view = self.view.borrow().clone();
        let others = view
            .nodes()
            .filter(|node| node.is_present() && node.info().id != self.id);
        let told = others.flat_map(|node| &node.info().pools);
        let recalled = self.pools.recalled.get().into_iter().flatten();
        PoolsElsewhere {
            known: told.chain(recalled).cloned().collect(),
            settled: self.pools.settled.lock().clone(),
        }
    }

    /// Announces the pools when there are others than before: a node that starts now is to know of them. In vain is fine: the
    /// next announcement says the same.
    async fn tell_pools(&self) {
        let known = self.pools_here().known;
        if *self.pools.told.lock() == known {
            return;
        }
        if self.announce().await.is_ok() {
            *self.pools.told.lock() = known;
            self.remember_pools().await;
        }
    }

    /// Asks the store what it remembers. In vain is fine: the other nodes know better, and it is asked again.
    pub(super) async fn recall_pools(&self) {
        let recalled = async {
            let pools = self.membership.remembered_pools().await?;
            Ok((pools, self.membership.settled_names().await?))
        };
        match self.in_time(recalled).await {
            Ok((pools, names)) => {
                *self.pools.settled.lock() = names;
                // A node asks once.
                let _ = self.pools.recalled.set(pools.into_iter().collect());
            }
            Err(error) => tracing::debug!(%error, "could not ask which pools there were"),
        }
    }

    /// Has the store remember the pools, if this node knows all of them: also those that it remembered before, which are lost
    /// then.
    pub(super) async fn remember_pools(&self) {
        if self.pools.recalled.get().is_none() {
            self.recall_pools().await;
            self.tell_elsewhere();
            return;
        }
        let here = self.pools_here();
        if !here.is_whole || here.known.is_empty() || self.me.lock().draining {
            return;
        }
        let pools: Vec<String> = here.known.iter().cloned().collect();
        if is_due(&self.pools.written, &here.known) {
            let remembering = self.membership.remember_pools(&pools, REMEMBERED);
            let remembered = self.in_time(remembering).await;
            if remembered.is_ok() {
                *self.pools.written.lock() = Some((here.known, Instant::now()));
            }
            warn_of(remembered, "could not have the pools remembered; trying on");
        }
        self.settle_names(here.contested, &pools).await;
    }

    /// Agrees with the other nodes on which pools keep the names that several offer.
    async fn settle_names(&self, contested: Names, pools: &[String]) {
        let settled_before = !self.pools.settled.lock().is_empty();
        let any = !contested.is_empty() || settled_before;
        if !any || !is_due(&self.pools.named, &contested) {
            return;
        }
        let settling = (self.membership).settle_names(&contested, pools, REMEMBERED);
        match self.in_time(settling).await {
            Ok(settled) => {
                *self.pools.settled.lock() = settled;
                *self.pools.named.lock() = Some((contested, Instant::now()));
                self.tell_elsewhere();
            }
            Err(error) => {
                warn_of(
                    Err(error),
                    "could not agree on names that several pools offer; trying on",
                );
            }
        }
    }
}

/// Whether the store is to be told: of something else than before, or after a while.
fn is_due<T: PartialEq>(told: &Mutex<Option<(T, Instant)>>, now: &T) -> bool {
    let is_told = |(before, at): &(T, Instant)| before == now && at.elapsed() < REMIND;
    !told.lock().as_ref().is_some_and(is_told)
}
