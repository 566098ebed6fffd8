use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use shoal_ports::{
    Announcement, OwnLists, PoolCatalog, ResourceUpdated, ServerFacts, Worker, WorkerId,
};
use shoal_protocol::{KeyRing, RawJson};
use shoal_telemetry::metrics::Registration;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::awaiting::Awaiting;
use crate::bridge::ParkingLot;
use crate::catalog::{AgreedNames, Audience, Catalog, Keepers};
use crate::config::{Config, PoolConfig, PoolSettings};
use crate::in_flight::InFlightCalls;
use crate::known_names::allow_names;
use crate::own::OwnViews;
use crate::picture::Picture;
use crate::pools::{Registry, View};
use crate::remembered::Memorable;
use crate::slow_checks::SlowChecks;
use crate::subscriptions::Subscriptions;

const NOTHING: [u64; 3] = [0; 3];

const UPDATES: usize = 1024;

pub(crate) struct DispatchState {
    pub(crate) config: Config,
    pub(crate) keys: KeyRing,
    pub(crate) updates: broadcast::Sender<ResourceUpdated>,
    pub(crate) facts: watch::Sender<Arc<ServerFacts>>,
    newest: Arc<Mutex<[u64; 3]>>,
    pub(crate) lot: Arc<ParkingLot>,
    pub(crate) checking: Arc<SlowChecks>,
    pub(crate) own: OwnViews,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) in_flight: Arc<InFlightCalls>,
    pub(crate) awaiting: Awaiting,
    view: RwLock<Arc<View>>,
    changes: watch::Sender<()>,
    registry: Mutex<Registry>,
    _gauges: [Registration; 6],
}

impl DispatchState {
    pub(crate) fn new(mut config: Config, keys: KeyRing, gauges: [Registration; 6]) -> Self {
        let settings = Arc::new(PoolSettings::new(
            std::mem::take(&mut config.pools),
            !config.catalog.unnamed_pools,
        ));
        let (nobodys, everybody) = (Keepers::default(), Audience::Everybody);
        let catalog = Catalog::merge(&[], &config, &settings, nobodys, everybody);
        let catalog = Arc::new(catalog);
        let facts = ServerFacts {
            server_info: catalog.server_info.clone(),
            capabilities: RawJson::from_static("{}"),
            instructions: catalog.instructions.clone(),
            versions: NOTHING,
            headers: Arc::default(),
            own: OwnLists::default(),
        };
        let facts = Arc::new(facts);
        let picture = Picture::new(&config);
        let view = View::empty(catalog, settings.clone(), picture.clone());
        Self {
            lot: ParkingLot::new(&config),
            checking: SlowChecks::new(config.catalog.validation_steps),
            own: OwnViews::default(),
            config,
            keys,
            updates: broadcast::Sender::new(UPDATES),
            newest: Arc::new(Mutex::new(NOTHING)),
            facts: watch::Sender::new(facts),
            subscriptions: Subscriptions::default(),
            in_flight: Arc::default(),
            awaiting: Awaiting::default(),
            view: RwLock::new(Arc::new(view)),
            changes: watch::Sender::new(()),
            registry: Mutex::new(Registry::new(settings, picture)),
            _gauges: gauges,
        }
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.view.read().clone()
    }

    /// Wakes when the view changes or a worker is reachable again.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(crate) fn add(&self, worker: Arc<dyn Worker>, announcement: Announcement) {
        let mut registry = self.registry.lock();
        registry.add(worker, announcement, &self.config);
        self.refresh(&mut registry);
    }

    pub(crate) fn keep(&self, worker: &WorkerId, tasks: [AbortHandle; 3]) {
        self.registry.lock().keep(worker, tasks);
    }

    /// Returns whether the worker was registered and, if it was its pool's last, after which time to
    /// [check](Self::look) the pool.
    pub(crate) fn remove(&self, worker: &WorkerId) -> (bool, Option<Duration>) {
        let mut registry = self.registry.lock();
        let Some(pool) = registry.remove(worker) else {
            return (false, None);
        };
        self.refresh(&mut registry);
        (true, registry.lingers(&pool))
    }

    pub(crate) fn has_left(&self, worker: &WorkerId) -> bool {
        self.registry.lock().has_left(worker)
    }

    pub(crate) fn expect(&self, pools: &BTreeSet<String>) {
        let mut registry = self.registry.lock();
        if registry.expect(pools) {
            self.refresh(&mut registry);
        }
    }

    pub(crate) fn agree(&self, names: &AgreedNames) {
        let mut registry = self.registry.lock();
        if registry.agree(names) {
            self.refresh(&mut registry);
        }
    }

    pub(crate) fn recall(&self, pools: Vec<(String, Arc<PoolCatalog>)>) {
        let mut registry = self.registry.lock();
        let mut is_news = false;
        for (pool, catalog) in pools {
            is_news |= registry.recall(&pool, catalog);
        }
        if is_news {
            self.refresh(&mut registry);
        }
    }

    pub(crate) fn unknown_scaled_pools(&self) -> Vec<String> {
        self.registry.lock().unknown_scaled()
    }

    pub(crate) fn to_remember(&self) -> Vec<Memorable> {
        self.registry.lock().to_remember()
    }

    pub(crate) fn to_forget(&self) -> Vec<Arc<str>> {
        self.registry.lock().to_forget()
    }

    pub(crate) fn configure(&self, pools: BTreeMap<String, Option<PoolConfig>>) {
        let mut registry = self.registry.lock();
        registry.configure(pools);
        self.refresh(&mut registry);
    }

    pub(crate) fn look(&self) {
        self.refresh(&mut self.registry.lock());
    }

    pub(crate) fn rules_changed(&self) {
        self.refresh(&mut self.registry.lock());
    }

    pub(crate) fn hear(&self, worker: &Arc<dyn Worker>, announcement: Announcement) -> bool {
        let mut registry = self.registry.lock();
        if registry.has_heard(worker, &announcement) {
            self.changes.send_replace(());
            return false;
        }
        let appears = registry.hear(worker, announcement);
        if appears.is_some() {
            self.refresh(&mut registry);
        }
        appears.unwrap_or_default()
    }

    pub(crate) fn hear_own(&self, worker: &Arc<dyn Worker>, own: OwnLists) {
        let mut registry = self.registry.lock();
        if registry.hear_own(worker, own) {
            self.refresh(&mut registry);
        }
    }

    /// Rebuilds without the view's lock, so that calls continue with the old view.
    fn refresh(&self, registry: &mut Registry) {
        let before = self.view();
        let (view, facts) = registry.view(&self.config, &before);
        allow_names(&view, &before.catalog);
        // Published before the view, so that capabilities are known when a pool becomes visible.
        let (versions, own) = (facts.versions, facts.own.clone());
        publish(&self.facts, |known| {
            *known = ServerFacts {
                versions: known.versions,
                own: known.own.clone(),
                ..facts
            };
        });
        *self.view.write() = Arc::new(view);
        self.changes.send_replace(());
        // A client lists as soon as its session announces this change, so the view with the new lists comes first.
        publish(&self.facts, |facts| facts.own = own);
        self.tell(versions);
    }

    /// Announces changed lists: the first lists at once, later ones after `announce_after`, when other nodes have
    /// learned of them too.
    fn tell(&self, versions: [u64; 3]) {
        let wait = self.config.catalog.announce_after.get();
        *self.newest.lock() = versions;
        let is_first = self.facts.borrow().versions == NOTHING;
        if is_first || wait.is_zero() {
            return publish(&self.facts, |facts| facts.versions = versions);
        }
        let (told, newest) = (self.facts.clone(), self.newest.clone());
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let versions = *newest.lock();
            publish(&told, |facts| facts.versions = versions);
        });
    }
}

fn publish(told: &watch::Sender<Arc<ServerFacts>>, change: impl FnOnce(&mut ServerFacts)) {
    told.send_if_modified(|known| {
        let mut facts = (**known).clone();
        change(&mut facts);
        let changed = **known != facts;
        if changed {
            *known = Arc::new(facts);
        }
        changed
    });
}
