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
use crate::gauges;
use crate::remembered::Memorable;
use crate::shared::DispatchState;
use crate::status::Status;
use crate::subscriptions::Subscriptions;

/// Runs calls on any number of workers. A cheap handle.
#[derive(Clone)]
pub struct Dispatch {
    pub(crate) shared: Arc<DispatchState>,
}

impl Dispatch {
    /// Creates a dispatcher without workers. `keys` seal the state of multi round-trip requests and
    /// must be the same on every node.
    pub fn new(config: Config, keys: KeyRing) -> Self {
        Self {
            shared: Arc::new_cyclic(|own| DispatchState::new(config, keys, gauges::register(own))),
        }
    }

    /// Adds a worker and follows its announcements until removal. Replaces a worker with the same
    /// id, whose running calls continue.
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
            Some(_) => tracing::debug!(worker = %id, %pool, "a worker joined"),
            None => tracing::info!(worker = %id, %pool, "a worker joined"),
        }
        let ready = said.catalog.is_some();
        // The worker must be known before its announcements come.
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

    /// Removes a worker, whose running calls continue. Returns whether the worker was registered.
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

    /// Replaces pools' settings for calls planned from now on, and announces changed lists. `None` means that the
    /// configuration no longer names the pool. Such a pool keeps its settings while workers offer it.
    pub fn configure(&self, pools: BTreeMap<String, Option<PoolConfig>>) {
        if !pools.is_empty() {
            self.shared.configure(pools);
        }
    }

    /// Sets the pools that other nodes know. Until such a pool joins here, for at most its `linger`, Shoal refuses
    /// unknown names as safe to retry.
    pub fn expect(&self, pools: &BTreeSet<String>) {
        self.shared.expect(pools);
    }

    /// Lists pools at zero that this node does not know, by their remembered offers.
    pub fn recall(&self, pools: Vec<(String, Arc<PoolCatalog>)>) {
        self.shared.recall(pools);
    }

    /// Returns catalogs of pools that may scale to zero, for nodes that start later.
    pub fn to_remember(&self) -> Vec<Memorable> {
        self.shared.to_remember()
    }

    /// Returns pools that may scale to zero and were removed. They stay unlisted until a worker
    /// joins.
    pub fn to_forget(&self) -> Vec<Arc<str>> {
        self.shared.to_forget()
    }

    /// Returns pools that may scale to zero and whose catalogs are unknown.
    pub fn unknown_scaled_pools(&self) -> Vec<String> {
        self.shared.unknown_scaled_pools()
    }

    /// Wakes when the pools or their workers change.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes()
    }

    /// Applies the nodes' agreement on contested names, by the keys of
    /// [`contested`](Self::contested).
    pub fn agree(&self, names: &BTreeMap<String, String>) {
        self.shared.agree(names);
    }

    /// Returns the names that several pools offer, and the pool that keeps each here.
    pub fn contested(&self) -> BTreeMap<String, String> {
        contested(&self.shared.view().catalog.conflicts)
    }

    /// Announces possibly changed lists, because new [rules](Config::policies) are in force.
    pub fn rules_changed(&self) {
        self.shared.rules_changed();
    }

    /// Returns the pools with known tools.
    pub fn known_pools(&self) -> BTreeSet<String> {
        let view = self.shared.view();
        view.known_pools().map(ToString::to_string).collect()
    }

    /// Whether every pool that other nodes know has joined here.
    pub fn is_whole(&self) -> bool {
        self.shared.view().is_whole()
    }

    /// Returns the pools' conflicts, for `/readyz` and the status.
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.shared.view().catalog.conflicts.clone()
    }

    /// Finds tools by name, title or pool, ignoring case. The order is unspecified.
    pub fn tools(&self, filter: &str) -> Vec<ToolReport> {
        self.shared.view().catalog.reports(filter)
    }

    /// Reports the tool that clients call `name`.
    pub fn tool(&self, name: &str) -> Option<ToolDetail> {
        self.shared.view().catalog.detail(name)
    }

    /// Counts this node's calls in flight.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.len()
    }

    /// Lists this node's calls in flight, the oldest first; with `session`, only that session's.
    pub fn calls(&self, session: Option<&SessionId>, limit: usize) -> Listing<CallReport> {
        self.shared.in_flight.list(session, limit)
    }

    /// Cancels a call in flight; its caller sees a cancelled call. `false` if the call is not on
    /// this node.
    pub fn cancel(&self, call: CallId, reason: &str) -> bool {
        self.shared.in_flight.cancel(call, reason)
    }

    /// Stops calls without a session, also later ones, because this process ends. Returns their
    /// number. Callers get an answer at once, and tools are told to stop.
    pub fn stop_without_session(&self) -> usize {
        self.shared.in_flight.stop_without_session()
    }

    /// Returns the state for operators.
    pub fn status(&self) -> Status {
        let DispatchState {
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
