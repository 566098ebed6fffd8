//! The public face: workers come and go, and calls run on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shoal_ports::{
    CallId, CallReport, Listing, PoolCatalog, SessionId, ToolDetail, ToolReport, Worker, WorkerId,
    WorkerSet,
};
use shoal_protocol::KeyRing;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::catalog::{Conflict, contested};
use crate::config::{Config, PoolConfig};
use crate::remembered::Memorable;
use crate::shared::Shared;
use crate::status::Status;
use crate::subscriptions::Subscriptions;

/// Runs calls on any number of workers; a cheap handle.
#[derive(Clone)]
pub struct Dispatch {
    pub(crate) shared: Arc<Shared>,
}

impl Dispatch {
    /// A dispatcher without workers. `keys` seal what multi round-trip requests carry through clients;
    /// every node must have the same.
    pub fn new(config: Config, keys: KeyRing) -> Self {
        Self {
            shared: Arc::new_cyclic(|own| Shared::new(config, keys, own)),
        }
    }

    /// Takes a worker in, and follows what it says until it is removed. A worker of the same id is
    /// replaced; its running calls go on.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn add_worker(&self, worker: Arc<dyn Worker>) {
        let mut announcements = worker.announcement();
        let updates = worker.resource_updates();
        let own_lists = worker.own_lists();
        let said = announcements.borrow_and_update().clone();
        let (id, pool) = (said.worker.clone(), said.pool.clone());
        match worker.here() {
            // It came with the process, and is no news.
            Some(_) => tracing::debug!(worker = %id, %pool, "a worker joined"),
            None => tracing::info!(worker = %id, %pool, "a worker joined"),
        }
        let ready = said.catalog.is_some();
        // Registered before it is followed, so that no announcement is heard of a stranger.
        self.shared.add(worker.clone(), said);
        let weak = Arc::downgrade(&self.shared);
        let forward = crate::watch::resource_updates(weak.clone(), pool.clone(), updates);
        let forward = tokio::spawn(forward);
        let followed = worker.clone();
        let follow = tokio::spawn(async move {
            if let (true, Some(shared)) = (ready, weak.upgrade()) {
                Subscriptions::follow(&shared, &pool, followed.as_ref(), true).await;
            }
            crate::watch::announcements(weak, followed, announcements).await;
        });
        let own = crate::watch::own_lists(Arc::downgrade(&self.shared), worker, own_lists);
        let own = tokio::spawn(own);
        let tasks = [follow, forward, own].map(|task| task.abort_handle());
        self.shared.keep(&id, tasks);
    }

    /// Lets a worker go; nothing new is started on it, and what runs there goes on. Returns whether it was
    /// there.
    pub fn remove_worker(&self, worker: &WorkerId) -> bool {
        let (removed, lingers) = self.shared.remove(worker);
        if removed {
            tracing::info!(%worker, "a worker left");
        }
        if let (Some(time), Ok(runtime)) = (lingers, Handle::try_current()) {
            let shared = Arc::downgrade(&self.shared);
            runtime.spawn(async move {
                tokio::time::sleep(time).await;
                if let Some(shared) = shared.upgrade() {
                    shared.look();
                }
            });
        }
        removed
    }

    /// Goes by other settings of these pools: from now on, for all that is planned. `None` stands for a pool that the
    /// configuration does not name any more: it keeps its settings for as long as workers offer it. Clients are told of lists
    /// that read differently.
    pub fn configure(&self, pools: BTreeMap<String, Option<PoolConfig>>) {
        if !pools.is_empty() {
            self.shared.configure(pools);
        }
    }

    /// Notes which pools other nodes know, all of them. One that is yet to come here is waited for, for as long as one
    /// whose last worker has gone stays listed: what is unknown is refused as safe to send again meanwhile.
    pub fn expect(&self, pools: &BTreeSet<String>) {
        self.shared.expect(pools);
    }

    /// Lists what pools offered when they had a worker last, where they may have none and are not known yet.
    pub fn recall(&self, pools: Vec<(String, Arc<PoolCatalog>)>) {
        self.shared.recall(pools);
    }

    /// Returns the catalogs of the pools that may scale to zero, to be remembered for nodes that start.
    pub fn to_remember(&self) -> Vec<Memorable> {
        self.shared.to_remember()
    }

    /// Returns the pools that may scale to zero and that their workers have removed. They are listed no more until a worker comes.
    pub fn to_forget(&self) -> Vec<Arc<str>> {
        self.shared.to_forget()
    }

    /// The pools that may have no worker, and of which nothing is known.
    pub fn unknown_scaled_pools(&self) -> Vec<String> {
        self.shared.unknown_scaled_pools()
    }

    /// Wakes when the pools or their workers have changed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes()
    }

    /// Goes by what the nodes have agreed on: which pool keeps a name that several offer, by the keys of
    /// [`contested`](Self::contested).
    pub fn agree(&self, names: &BTreeMap<String, String>) {
        self.shared.agree(names);
    }

    /// The names that several pools offer, each with the pool that keeps it here: for the nodes to agree on.
    pub fn contested(&self) -> BTreeMap<String, String> {
        contested(&self.shared.view().catalog.conflicts)
    }

    /// Tells clients that their lists may have changed, after other [rules](Config::policies) have come into force. Calls and
    /// lists follow those at once.
    pub fn rules_changed(&self) {
        self.shared.rules_changed();
    }

    /// The pools whose tools are known here.
    pub fn known_pools(&self) -> BTreeSet<String> {
        let view = self.shared.view();
        view.known_pools().map(ToString::to_string).collect()
    }

    /// Whether every pool that other nodes know has come.
    pub fn is_whole(&self) -> bool {
        self.shared.view().is_whole()
    }

    /// What two pools both claim, for `/readyz` and the status.
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.shared.view().catalog.conflicts.clone()
    }

    /// The tools whose name, title or pool contains `filter`, in any case and in no order, for operators. Nothing is told of
    /// their calls.
    pub fn tools(&self, filter: &str) -> Vec<ToolReport> {
        self.shared.view().catalog.reports(filter)
    }

    /// The tool that clients call `name`.
    pub fn tool(&self, name: &str) -> Option<ToolDetail> {
        self.shared.view().catalog.detail(name)
    }

    /// How many calls are in flight here, of either era.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.len()
    }

    /// The calls in flight here, the oldest first; those of one session only, if one is given.
    pub fn calls(&self, session: Option<&SessionId>, limit: usize) -> Listing<CallReport> {
        self.shared.in_flight.list(session, limit)
    }

    /// Tells a call in flight to stop, whoever began it; `false` when it is not here. Its caller sees it end
    /// as one that was cancelled.
    pub fn cancel(&self, call: CallId, reason: &str) -> bool {
        self.shared.in_flight.cancel(call, reason)
    }

    /// Stops all calls that belong to no session, and each that begins from now on, since this process ends; how many there
    /// were. Their callers are told so at once, and the tools are told to stop.
    pub fn stop_without_session(&self) -> usize {
        self.shared.in_flight.stop_without_session()
    }

    /// What an operator can see.
    pub fn status(&self) -> Status {
        let Shared {
            lot, subscriptions, ..
        } = &*self.shared;
        Status::of(
            &self.shared.view(),
            lot.len(),
            subscriptions.len(),
            &self.shared.awaiting,
        )
    }
}

impl WorkerSet for Dispatch {
    fn add(&self, worker: Arc<dyn Worker>) {
        self.add_worker(worker);
    }

    fn remove(&self, worker: &WorkerId) {
        self.remove_worker(worker);
    }
}
