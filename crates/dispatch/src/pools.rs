mod affinity;
mod balance;
mod circuit;
mod departed;
mod registry;
mod rollout;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use shoal_ports::{Announcement, CallFailure, Caller, FailureKey, LedgerNumber, Worker, WorkerId};
use shoal_protocol::Method;
use shoal_telemetry::metrics::ShedReason;
use tokio::time::Instant;

pub(crate) use affinity::AffinityKey;
pub(crate) use circuit::Circuit;
pub(crate) use circuit::CircuitMark;
pub use circuit::CircuitState;
pub(crate) use registry::Registry;

use crate::asker::Asker;
use crate::catalog::{AgreedNames, Catalog, Keepers, Pool};
use crate::config::PoolSettings;
use crate::own::OwnPools;
use crate::picture::{NOT_WHOLE, Picture, not_ready};
use crate::shape::Shaping;

/// The view is immutable and replaced as a whole.
pub(crate) struct View {
    pub(crate) catalog: Arc<Catalog>,
    fleet: Arc<WorkerFleet>,
}

pub(crate) struct WorkerFleet {
    pub(crate) pools: BTreeMap<Arc<str>, PoolView>,
    pub(crate) settings: Arc<PoolSettings>,
    pub(crate) own: OwnPools,
    pub(crate) offered: Arc<[Pool]>,
    agreed: Arc<AgreedNames>,
    by_id: HashMap<WorkerId, Arc<PoolMember>, RandomState>,
    picture: Picture,
}

impl Deref for View {
    type Target = WorkerFleet;

    fn deref(&self) -> &WorkerFleet {
        &self.fleet
    }
}

#[derive(Default)]
pub(crate) struct PoolView {
    pub(crate) ready: Vec<Arc<PoolMember>>,
    /// Workers that take no calls.
    pub(crate) waiting: Vec<Arc<PoolMember>>,
    pub(crate) announced: bool,
    /// All workers announced the pool's removal, and only finish their calls.
    pub(crate) removed: bool,
    /// The configuration does not name the pool.
    pub(crate) unnamed: bool,
}

pub(crate) struct PoolMember {
    pub(crate) id: WorkerId,
    pub(crate) pool: Arc<str>,
    pub(crate) worker: Arc<dyn Worker>,
    /// Why the worker is not ready or, if ready, which items are degraded.
    pub(crate) detail: Option<String>,
    pub(crate) circuit: Arc<Circuit>,
    /// The worker's tools, if they differ from the pool's list.
    tools: Option<Arc<HashSet<String>>>,
    headers: Arc<[Arc<str>]>,
    seed: u64,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct WantedWorker<'a> {
    /// The tool's name at the backend.
    pub(crate) tool: Option<&'a str>,
    pub(crate) key: Option<AffinityKey>,
    /// Without caller and method, failures are not counted.
    pub(crate) by: Option<(Asker<'a>, &'a Method)>,
}

impl WantedWorker<'_> {
    pub(crate) fn failure_key(&self) -> Option<FailureKey> {
        let (asker, method) = self.by?;
        Some(asker.failure_key(method, self.tool))
    }

    pub(crate) fn is_anybodys(&self) -> bool {
        self.failure_key().is_some_and(|key| key.is_anybodys())
    }
}

impl PoolMember {
    pub(crate) fn is_reachable(&self) -> bool {
        self.worker.load().capacity > 0
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.worker.announcement().borrow().is_leaving()
    }

    pub(crate) fn told(&self, caller: &Arc<Caller>) -> Arc<Caller> {
        if caller.headers.is_empty() {
            return Arc::clone(caller);
        }
        Arc::new(Caller {
            headers: caller.headers.only(&self.headers),
            ..(**caller).clone()
        })
    }

    fn has(&self, tool: Option<&str>) -> bool {
        match (&self.tools, tool) {
            (Some(tools), Some(tool)) => tools.contains(tool),
            _ => true,
        }
    }

    pub(crate) fn circuit_of(&self, wanted: &WantedWorker<'_>) -> CircuitState {
        if self.circuit.is_well() {
            return CircuitState::Closed;
        }
        let key = wanted.failure_key();
        key.map_or(CircuitState::Closed, |key| self.circuit.state_of(&key))
    }

    pub(crate) fn enter(&self, wanted: &WantedWorker<'_>) -> bool {
        self.circuit.is_well() || (wanted.failure_key()).is_none_or(|key| self.circuit.enter(&key))
    }

    fn can_take(&self, tool: Option<&str>) -> bool {
        self.is_reachable() && self.has(tool)
    }

    fn trouble(&self, ready: bool, wanted: &WantedWorker<'_>) -> Option<String> {
        if !ready {
            return Some(
                self.detail
                    .clone()
                    .unwrap_or_else(|| "not ready".to_owned()),
            );
        }
        let trouble = if !self.is_reachable() {
            "it cannot be reached"
        } else if !self.has(wanted.tool) {
            "its version does not have the tool"
        } else if self.circuit_of(wanted) == CircuitState::Open {
            "your calls like this one failed too often in a row there"
        } else {
            return None;
        };
        Some(trouble.to_owned())
    }
}

impl View {
    /// Returns how results are adapted for the caller. A read of a caller with lists of its own is as private as these
    /// lists.
    pub(crate) fn shaping(&self, caller: &Caller, method: &Method) -> &Arc<Shaping> {
        match matches!(method, Method::ResourcesRead) && self.own.sight(caller).is_some() {
            true => &self.catalog.shaping_for_one,
            false => &self.catalog.shaping,
        }
    }

    pub(crate) fn empty(
        catalog: Arc<Catalog>,
        settings: Arc<PoolSettings>,
        picture: Picture,
    ) -> Self {
        let fleet = WorkerFleet {
            pools: BTreeMap::new(),
            settings,
            own: OwnPools::default(),
            offered: Arc::default(),
            agreed: Arc::default(),
            by_id: HashMap::default(),
            picture,
        };
        Self::new(catalog, fleet)
    }

    fn new(catalog: Arc<Catalog>, mut fleet: WorkerFleet) -> Self {
        let members = fleet.pools.values().flat_map(PoolView::members);
        fleet.by_id = members.map(|m| (m.id.clone(), m.clone())).collect();
        Self {
            catalog,
            fleet: Arc::new(fleet),
        }
    }

    pub(crate) fn with(&self, catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            fleet: Arc::clone(&self.fleet),
        }
    }

    pub(crate) fn keepers_of(&self, pools: &[Pool]) -> Keepers {
        let now = Instant::now();
        let is_missing = |name: &str| {
            let is_here = pools.iter().any(|pool| *pool.name == *name);
            let until = self.picture.waits_until(name);
            !is_here && until.is_some_and(|until| now < until)
        };
        Keepers::of(
            pools,
            &self.settings,
            &self.catalog,
            &self.agreed,
            &is_missing,
        )
    }

    pub(crate) fn member(&self, id: &WorkerId) -> Option<&Arc<PoolMember>> {
        self.by_id.get(id)
    }

    pub(crate) fn ledger(&self, id: &WorkerId) -> Option<LedgerNumber> {
        self.member(id)?.worker.ledger()
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Arc<PoolMember>> {
        self.pools.values().flat_map(PoolView::members)
    }

    pub(crate) fn is_vacant(&self, pool: &str) -> bool {
        !self.has_worker(pool) && self.settings.scale_to_zero(pool).is_some()
    }

    pub(crate) fn has_worker(&self, pool: &str) -> bool {
        let ready = self.pools.get(pool).map(|pool| &pool.ready);
        ready.is_some_and(|ready| ready.iter().any(|member| member.is_reachable()))
    }

    /// Fails with `NotExecuted` and the reason why no worker is ready.
    pub(crate) fn choose(
        &self,
        pool: &str,
        wanted: &WantedWorker<'_>,
        tried: &[WorkerId],
    ) -> Result<&Arc<PoolMember>, CallFailure> {
        let Some(view) = self.pools.get(pool) else {
            return Err(CallFailure::not_executed(vacant(pool)));
        };
        balance::choose(&view.ready, wanted, tried)
            .ok_or_else(|| CallFailure::not_executed(view.why_not(pool, wanted)))
    }

    pub(crate) fn draw(
        &self,
        pool: &str,
        wanted: &WantedWorker<'_>,
        tried: &[WorkerId],
    ) -> Option<&Arc<PoolMember>> {
        balance::draw(&self.pools.get(pool)?.ready, wanted, tried)
    }

    pub(crate) fn shed_reason(&self, pool: &str, wanted: &WantedWorker<'_>) -> ShedReason {
        let ready = self.pools.get(pool).map_or(&[][..], |pool| &pool.ready);
        match ready.iter().any(|member| member.can_take(wanted.tool)) {
            true => ShedReason::CircuitOpen,
            false => ShedReason::NoWorker,
        }
    }

    /// With rules, the failure names no pool, because the rules may hide the pool.
    pub(crate) fn unannounced(&self, has_rules: bool) -> Option<CallFailure> {
        match self.not_announced()? {
            CallFailure::NotReady { retry_after, .. } if has_rules => Some(CallFailure::NotReady {
                reason: NOT_WHOLE.to_owned(),
                retry_after,
            }),
            failure => Some(failure),
        }
    }

    fn not_announced(&self) -> Option<CallFailure> {
        if self.pools.is_empty() {
            return Some(not_ready("no worker has joined this node yet".to_owned()));
        }
        let mut unknown = self.pools.iter().filter(|(_, pool)| !pool.is_settled());
        if let Some((name, pool)) = unknown.next() {
            return Some(not_ready(pool.why_not(name, &WantedWorker::default())));
        }
        let now = Instant::now();
        self.picture.why_not(now, |pool| self.knows(pool))
    }

    pub(crate) fn unsettled(&self) -> Option<Duration> {
        let now = Instant::now();
        self.picture.unsettled(now, |pool| self.knows(pool))
    }

    pub(crate) fn starts(&self) -> bool {
        self.pools.values().any(PoolView::starts)
    }

    pub(crate) fn known_pools(&self) -> impl Iterator<Item = &Arc<str>> {
        let known = self.pools.iter().filter(|(_, pool)| pool.announced);
        known.map(|(name, _)| name)
    }

    pub(crate) fn is_whole(&self) -> bool {
        let missing = self
            .picture
            .missing(Instant::now(), |pool| self.knows(pool));
        missing.is_none()
    }

    fn knows(&self, pool: &str) -> bool {
        self.pools.get(pool).is_some_and(PoolView::is_settled)
    }
}

impl PoolView {
    fn is_settled(&self) -> bool {
        self.announced || self.removed || self.unnamed
    }

    fn starts(&self) -> bool {
        let starts =
            |member: &Arc<PoolMember>| member.detail.as_deref() == Some(Announcement::STARTING);
        !self.is_settled() && self.waiting.iter().any(starts)
    }

    fn members(&self) -> impl Iterator<Item = &Arc<PoolMember>> {
        self.ready.iter().chain(&self.waiting)
    }

    fn why_not(&self, pool: &str, wanted: &WantedWorker<'_>) -> String {
        if self.members().next().is_none() {
            return vacant(pool);
        }
        let ready = self.ready.iter().map(|member| (member, true));
        let waiting = self.waiting.iter().map(|member| (member, false));
        let troubles: Vec<String> = ready
            .chain(waiting)
            .filter_map(|(member, ready)| {
                let trouble = member.trouble(ready, wanted)?;
                Some(format!("{}: {trouble}", member.id))
            })
            .collect();
        if troubles.is_empty() {
            return format!("the pool {pool} has no other worker");
        }
        format!(
            "no worker of the pool {pool} is ready ({})",
            troubles.join(", ")
        )
    }
}

fn vacant(pool: &str) -> String {
    format!("no worker of the pool {pool} is connected; try again")
}
