//! Other nodes tell a starting node which pools to wait for; if all nodes stopped together, the store does. If
//! several pools offer a name, the nodes agree in the store which pool keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Members, MembersInner, warn_of};

/// How long the store remembers pools. After a longer outage of all nodes, the first nodes wait for no pools.
const REMEMBERED: Duration = Duration::from_secs(3_600);
/// Interval at which a node writes its pools even if they are unchanged.
const REMIND: Duration = Duration::from_secs(600);

/// The pools that this node knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolsHere {
    /// Names of the pools.
    pub known: BTreeSet<String>,
    /// Whether this node knows all pools that other nodes know.
    pub is_whole: bool,
    /// Names that several pools offer, with the pool that this node chose.
    pub contested: Names,
}

/// The pools that other nodes have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolsElsewhere {
    /// Pools that other nodes announce, or that the store remembers from before this node started.
    pub known: BTreeSet<String>,
    /// Names that several pools offer, with the agreed pool.
    pub settled: Names,
}

type Names = BTreeMap<String, String>;

type Elsewhere = dyn Fn(&PoolsElsewhere) + Send + Sync;

#[derive(Default)]
pub(super) struct PoolMemory {
    here: OnceLock<Box<dyn Fn() -> PoolsHere + Send + Sync>>,
    elsewhere: OnceLock<Box<Elsewhere>>,
    recalled: OnceLock<BTreeSet<String>>,
    told: Mutex<BTreeSet<String>>,
    written: Mutex<Option<(BTreeSet<String>, Instant)>>,
    named: Mutex<Option<(Names, Instant)>>,
    settled: Mutex<Names>,
}

impl Members {
    /// Shares pools with other nodes: calls `here` at each announcement, and `elsewhere` now and after each read of the
    /// list of nodes. Only the first call has an effect.
    pub fn share_pools(
        &self,
        here: impl Fn() -> PoolsHere + Send + Sync + 'static,
        elsewhere: impl Fn(&PoolsElsewhere) + Send + Sync + 'static,
    ) {
        let pools = &self.shared.pools;
        if pools.elsewhere.set(Box::new(elsewhere)).is_err() {
            return;
        }
        // `elsewhere` makes this node wait for the others' pools; meanwhile `here` does not report `is_whole`.
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

    /// Does not wait for the next heartbeat, because starting nodes wait for changed pools. After a failure, the next
    /// announcement has the pools.
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

    /// A failure is harmless: other nodes announce newer pools, and `remember_pools` retries.
    pub(super) async fn recall_pools(&self) {
        let recalled = async {
            let pools = self.membership.remembered_pools().await?;
            Ok((pools, self.membership.settled_names().await?))
        };
        match self.in_time(recalled).await {
            Ok((pools, names)) => {
                *self.pools.settled.lock() = names;
                let _ = self.pools.recalled.set(pools.into_iter().collect());
            }
            Err(error) => {
                tracing::debug!(%error, "cannot read the remembered pools from the store")
            }
        }
    }

    /// Stores the pools only once this node knows all of them. Drops remembered pools that are gone.
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
            warn_of(remembered, "cannot store the pools; retrying");
        }
        self.settle_names(here.contested, &pools).await;
    }

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
                    "cannot store which pool offers a name that several pools have; retrying",
                );
            }
        }
    }
}

fn is_due<T: PartialEq>(told: &Mutex<Option<(T, Instant)>>, now: &T) -> bool {
    let is_told = |(before, at): &(T, Instant)| before == now && at.elapsed() < REMIND;
    !told.lock().as_ref().is_some_and(is_told)
}
