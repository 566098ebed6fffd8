//! The register of workers and their announcements.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Announcement, ListScope, OwnLists, PoolCatalog, ServerFacts, Worker, WorkerId};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::departed::Departed;
use super::rollout::{Versions, same};
use super::{Circuit, Fleet, Member, PoolView, View, affinity};
use crate::catalog::{AgreedNames, Audience, Catalog, CompiledPool, Keepers, Pool};
use crate::config::{Config, PoolConfig, PoolSettings};
use crate::own::OwnPools;
use crate::picture::Picture;
use crate::remembered::Memorable;

/// Why a worker takes no calls whose pool the configuration does not name.
const UNNAMED: &str =
    "this node's configuration does not name the pool (catalog.unnamed_pools = false)";

/// Every worker with its newest announcement, and what was compiled of them.
pub(crate) struct Registry {
    workers: BTreeMap<WorkerId, Registered>,
    pools: BTreeMap<Arc<str>, Listed>,
    /// How often backends have announced changes of what has stayed as it was.
    announced: [u64; 3],
    settings: Arc<PoolSettings>,
    picture: Picture,
    /// Which pools keep the names that several offer, as the nodes have agreed.
    agreed: Arc<AgreedNames>,
    /// Until when some of these names are kept for pools that have yet to join.
    reserved_until: Option<Instant>,
    /// Whether what is offered is to be merged anew, though no pool has changed.
    merges: bool,
    departed: Departed,
    /// Pools that may have no worker, and whose last worker has said that they are not to be there any more. What is remembered of
    /// them is out of date.
    gone: BTreeSet<Arc<str>>,
}

struct Registered {
    worker: Arc<dyn Worker>,
    announcement: Announcement,
    /// How often its backend had announced changes when it was last heard of.
    generations: Option<[u64; 3]>,
    /// Who sees other lists there.
    own: OwnLists,
    circuit: Arc<Circuit>,
    tasks: Vec<AbortHandle>,
}

/// A pool whose workers have said what it offers.
#[derive(Default)]
struct Listed {
    versions: Versions,
    compiled: Option<Arc<CompiledPool>>,
    /// The settings that it was compiled by.
    settings: PoolConfig,
    /// When its last worker left.
    vacant_since: Option<Instant>,
    /// Whether the last that left had said that the pool is not to be there any more.
    removed: bool,
    /// Whether it was remembered, and no worker has offered anything else since.
    recalled: bool,
}

impl Drop for Registered {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Registry {
    /// Without workers.
    pub(crate) fn new(settings: Arc<PoolSettings>, picture: Picture) -> Self {
        Self {
            workers: BTreeMap::new(),
            pools: BTreeMap::new(),
            announced: [0; 3],
            settings,
            picture,
            agreed: Arc::default(),
            reserved_until: None,
            merges: false,
            departed: Departed::default(),
            gone: BTreeSet::new(),
        }
    }

    /// Notes which pools others know; whether that is news. A name is kept for a pool only as long as that is waited for.
    pub(crate) fn expect(&mut self, pools: &BTreeSet<String>) -> bool {
        let is_news = self.picture.expect(pools, &self.settings);
        let ends = |until| is_news || Instant::now() >= until;
        self.merges |= self.reserved_until.is_some_and(ends);
        is_news || self.merges
    }

    /// Lists what a pool offered when it had a worker last; whether that is news. It stays listed only if it may have none.
    pub(crate) fn recall(&mut self, pool: &str, catalog: Arc<PoolCatalog>) -> bool {
        if self.settings.scale_to_zero(pool).is_none()
            || self.gone.contains(pool)
            || self.pools.get(pool).is_some_and(|it| it.compiled.is_some())
        {
            return false;
        }
        let now = Instant::now();
        let mut listed = Listed {
            vacant_since: Some(now),
            ..Listed::default()
        };
        listed.versions.update(&[&catalog], Duration::ZERO, now);
        let name: Arc<str> = pool.into();
        listed.compile(&name, self.settings.of(pool));
        listed.recalled = true;
        self.pools.insert(name, listed);
        self.picture.came(now);
        self.merges = true;
        true
    }

    /// The pools that may have no worker, and that nobody has told of.
    pub(crate) fn unknown_scaled(&self) -> Vec<String> {
        let is_unknown = |name: &&String| {
            !self.pools.contains_key(name.as_str()) && !self.gone.contains(name.as_str())
        };
        (self.settings.may_be_vacant())
            .filter(is_unknown)
            .cloned()
            .collect()
    }

    /// Returns the catalogs of the pools that may scale to zero.
    pub(crate) fn to_remember(&self) -> Vec<Memorable> {
        let may_be_vacant = |name: &Arc<str>| self.settings.scale_to_zero(name).is_some();
        let listed = self.pools.iter().filter(|(name, _)| may_be_vacant(name));
        listed
            .filter_map(|(name, listed)| {
                Some(Memorable {
                    pool: name.clone(),
                    catalog: listed.compiled.as_ref()?.source.clone(),
                    is_news: !listed.recalled,
                })
            })
            .collect()
    }

    /// The pools whose workers have removed them: what is remembered of them is to be forgotten.
    pub(crate) fn to_forget(&self) -> Vec<Arc<str>> {
        self.gone.iter().cloned().collect()
    }

    /// Notes what the nodes have agreed on; whether that is news.
    pub(crate) fn agree(&mut self, names: &AgreedNames) -> bool {
        let is_news = *self.agreed != *names;
        if is_news {
            self.agreed = Arc::new(names.clone());
            self.merges = true;
        }
        is_news
    }

    /// Takes other settings of these pools over; none where a pool is not named any more.
    pub(crate) fn configure(&mut self, pools: BTreeMap<String, Option<PoolConfig>>) {
        Arc::make_mut(&mut self.settings).change(pools);
    }

    /// Takes a worker in, in place of an earlier one of the same id.
    pub(crate) fn add(
        &mut self,
        worker: Arc<dyn Worker>,
        announcement: Announcement,
        config: &Config,
    ) {
        let id = announcement.worker.clone();
        self.departed.came(&id);
        // A connection that comes and goes must not clear what is held against its worker.
        let circuit = match self.workers.get(&id) {
            Some(former) => former.circuit.clone(),
            None => Arc::new(Circuit::new(config)),
        };
        let registered = Registered {
            worker,
            generations: announcement.catalog.as_ref().map(|c| c.generations),
            own: OwnLists::default(),
            announcement,
            circuit,
            tasks: Vec::new(),
        };
        if self.workers.insert(id.clone(), registered).is_some() {
            tracing::info!(worker = %id, "a worker was replaced");
        }
    }

    /// Ties tasks to a worker: they end when it leaves.
    pub(crate) fn keep(&mut self, worker: &WorkerId, tasks: [AbortHandle; 3]) {
        match self.workers.get_mut(worker) {
            Some(registered) => registered.tasks.extend(tasks),
            None => tasks.iter().for_each(AbortHandle::abort),
        }
    }

    /// Takes a worker out; its pool, if it was there.
    pub(crate) fn remove(&mut self, id: &WorkerId) -> Option<Arc<str>> {
        let registered = self.workers.remove(id)?;
        self.departed.left(id);
        let pool = registered.announcement.pool.clone();
        // It may have said so just now, when nobody follows it any more.
        let removed = registered.worker.announcement().borrow().is_removed();
        if let Some(listed) = self.pools.get_mut(&pool) {
            listed.removed = removed;
        }
        Some(pool)
    }

    /// Whether a worker was here and has been let go: whoever did that has waited for it.
    pub(crate) fn has_left(&self, id: &WorkerId) -> bool {
        self.departed.has(id)
    }

    /// Whether a worker says what it said before.
    pub(crate) fn has_heard(&self, worker: &Arc<dyn Worker>, said: &Announcement) -> bool {
        let same = |registered: &Registered| {
            let Announcement {
                catalog, detail, ..
            } = &registered.announcement;
            let catalogs = (
                catalog.as_ref().map(Arc::as_ptr),
                said.catalog.as_ref().map(Arc::as_ptr),
            );
            Arc::ptr_eq(&registered.worker, worker)
                && catalogs.0 == catalogs.1
                && *detail == said.detail
        };
        self.workers.get(&said.worker).is_some_and(same)
    }

    /// Notes what a worker says now. Returns whether it is ready and was not before; `None` for a
    /// worker that is not registered (any more), or that another one has replaced.
    pub(crate) fn hear(
        &mut self,
        worker: &Arc<dyn Worker>,
        announcement: Announcement,
    ) -> Option<bool> {
        let registered = self
            .workers
            .get_mut(&announcement.worker)
            .filter(|registered| Arc::ptr_eq(&registered.worker, worker))?;
        if let Some(catalog) = &announcement.catalog {
            let before = registered.generations.replace(catalog.generations);
            let known = registered.announcement.catalog.as_deref();
            let changed = known.map_or([true; 3], |known| differences(known, catalog));
            // A backend that starts over counts from zero, which is no announcement. A list that did change
            // has another version anyway.
            for (at, count) in self.announced.iter_mut().enumerate() {
                let again = before.is_some_and(|before| before[at] < catalog.generations[at]);
                *count += u64::from(again && !changed[at]);
            }
        }
        let appears = registered.announcement.catalog.is_none() && announcement.catalog.is_some();
        registered.announcement = announcement;
        Some(appears)
    }

    /// Notes who sees other lists at a worker; whether it is registered, and that is news.
    pub(crate) fn hear_own(&mut self, worker: &Arc<dyn Worker>, own: OwnLists) -> bool {
        let id = worker.announcement().borrow().worker.clone();
        let registered = self.workers.get_mut(&id);
        let registered = registered.filter(|it| Arc::ptr_eq(&it.worker, worker));
        registered.is_some_and(|it| std::mem::replace(&mut it.own, own.clone()) != own)
    }

    /// The view of what is registered now, with the server's facts.
    pub(crate) fn view(&mut self, config: &Config, before: &View) -> (View, ServerFacts) {
        let removed = self.removed();
        let changed = self.update(&removed, Instant::now()) | std::mem::take(&mut self.merges);
        self.forget_dropped();
        let mut pools: BTreeMap<Arc<str>, PoolView> = BTreeMap::new();
        for (name, listed) in &self.pools {
            let announced = listed.compiled.is_some();
            pools.entry(name.clone()).or_default().announced = announced;
        }
        for (id, registered) in &self.workers {
            let said = &registered.announcement;
            let pool = pools.entry(said.pool.clone()).or_default();
            pool.removed = removed.contains(&said.pool);
            pool.unnamed = !self.settings.admits(&said.pool);
            let tools = said
                .catalog
                .as_ref()
                .and_then(|catalog| self.pools.get(&said.pool)?.versions.tools(catalog));
            let member = Arc::new(Member {
                id: id.clone(),
                pool: said.pool.clone(),
                worker: registered.worker.clone(),
                detail: match pool.unnamed {
                    true => Some(UNNAMED.to_owned()),
                    false => said.detail.clone(),
                },
                circuit: registered.circuit.clone(),
                tools,
                headers: asked(said),
                seed: affinity::seed(id),
            });
            match &said.catalog {
                Some(_) if !pool.unnamed => pool.ready.push(member),
                _ => pool.waiting.push(member),
            }
        }
        let (catalog, offered) = if changed {
            self.merge(config, &before.catalog)
        } else {
            (before.catalog.clone(), before.offered.clone())
        };
        let own = self.own_pools();
        let facts = ServerFacts {
            server_info: catalog.server_info.clone(),
            capabilities: catalog.capabilities.clone(),
            instructions: catalog.instructions.clone(),
            versions: self.versions(&catalog, config),
            headers: self.headers(),
            own: own.numbers(),
        };
        let fleet = Fleet {
            pools,
            settings: Arc::clone(&self.settings),
            own,
            offered,
            agreed: Arc::clone(&self.agreed),
            by_id: HashMap::default(),
            picture: self.picture.clone(),
        };
        (View::new(catalog, fleet), facts)
    }

    /// Whose lists are others than those of all.
    fn own_pools(&self) -> OwnPools {
        let mut own = OwnPools::default();
        // Also where nobody takes calls for a moment.
        for (name, listed) in &self.pools {
            let source = listed.compiled.as_ref().map(|it| &it.source);
            if let Some(source) = source.filter(|it| it.lists == ListScope::Principal) {
                own.add_pool(name, &source.headers);
            }
        }
        for (id, registered) in &self.workers {
            let said = &registered.announcement;
            let Some(catalog) = &said.catalog else {
                continue;
            };
            if !self.settings.admits(&said.pool) {
                continue;
            }
            if catalog.lists == ListScope::Principal {
                own.add_pool(&said.pool, &catalog.headers);
            }
            own.add_worker(&said.pool, id, &registered.own);
        }
        own
    }

    /// The pools whose workers have all said that they are not to be there any more.
    fn removed(&self) -> BTreeSet<Arc<str>> {
        let said = || self.workers.values().map(|worker| &worker.announcement);
        let named = |removed: bool| {
            let said = said().filter(move |said| said.is_removed() == removed);
            said.map(|said| said.pool.clone())
        };
        let goes_on: BTreeSet<Arc<str>> = named(false).collect();
        named(true).filter(|pool| !goes_on.contains(pool)).collect()
    }

    /// Forgets the settings of pools that are neither named nor offered any more.
    fn forget_dropped(&mut self) {
        let is_over = |name: &&String| {
            let mut workers = self.workers.values();
            !self.pools.contains_key(name.as_str())
                && !workers.any(|worker| *worker.announcement.pool == **name)
        };
        let over: Vec<String> = self.settings.dropped().filter(is_over).cloned().collect();
        for name in over {
            Arc::make_mut(&mut self.settings).forget(&name);
        }
        let settings = &self.settings;
        self.gone
            .retain(|name| settings.scale_to_zero(name).is_some());
    }

    /// Brings the compiled pools up to date; whether any changed.
    ///
    /// A pool whose workers are not ready keeps what it last said, so that its tools do not flicker; one
    /// without workers does so for its lingering time, unless it was `removed` or the configuration names it no more.
    fn update(&mut self, removed: &BTreeSet<Arc<str>>, now: Instant) -> bool {
        let mut announced: BTreeMap<Arc<str>, Vec<&Arc<PoolCatalog>>> = BTreeMap::new();
        let workers = self.workers.values();
        let staying = workers.filter(|worker| {
            let pool = &worker.announcement.pool;
            !removed.contains(pool) && self.settings.admits(pool)
        });
        for Registered { announcement, .. } in staying {
            let catalogs = announced.entry(announcement.pool.clone()).or_default();
            catalogs.extend(&announcement.catalog);
        }
        let may_be_vacant = |name: &&Arc<str>| self.settings.scale_to_zero(name).is_some();
        let gone = removed.iter().filter(may_be_vacant).cloned();
        self.gone.extend(gone);
        for name in announced.keys() {
            self.gone.remove(name);
            let listed = self.pools.entry(name.clone()).or_default();
            listed.vacant_since = None;
            listed.removed = false;
        }
        let mut changed = false;
        let settings = Arc::clone(&self.settings);
        self.pools.retain(|name, listed| {
            let is_dropped = settings.is_dropped(name);
            let may_be_vacant = settings.scale_to_zero(name).is_some();
            let settings = settings.of(name);
            let linger = settings.linger;
            let catalogs = announced.get(name).map_or(&[][..], Vec::as_slice);
            listed.versions.update(catalogs, linger, now);
            let vacant = !announced.contains_key(name);
            let since = match vacant {
                true => *listed.vacant_since.get_or_insert(now),
                false => now,
            };
            let stays = !vacant
                || listed.compiled.is_some()
                    && !removed.contains(name)
                    && !listed.removed
                    && !is_dropped
                    && (may_be_vacant || now < since + linger);
            changed |= if stays {
                if listed.compiled.is_none() && listed.versions.newest().is_some() {
                    self.picture.came(now);
                }
                listed.compile(name, settings)
            } else {
                if may_be_vacant && listed.removed {
                    self.gone.insert(name.clone());
                }
                tracing::info!(pool = %name, "a pool without workers is listed no more");
                listed.compiled.is_some()
            };
            stays
        });
        changed
    }

    /// For how long a pool that has just lost its last worker stays listed.
    pub(crate) fn lingers(&self, pool: &str) -> Option<Duration> {
        let listed = self.pools.get(pool)?;
        listed
            .vacant_since
            .is_some()
            .then(|| self.settings.of(pool).linger)
    }

    /// What the lists are, as numbers that are the same on every node that sees the same pools, so that a
    /// session that moves is not told of changes that there were not. What a backend announces without
    /// changing anything counts here alone.
    fn versions(&self, catalog: &Catalog, config: &Config) -> [u64; 3] {
        let mut versions = catalog.versions;
        // By other rules, somebody may see something else.
        let policy = config.policies.as_ref().map(|it| it.current());
        let policy = policy.map(|policy| policy.fingerprint());
        for (version, count) in versions.iter_mut().zip(self.announced) {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(*version);
            if let Some(policy) = policy {
                hasher.write_u64(policy);
            }
            hasher.write_u64(count);
            *version = hasher.finish();
        }
        versions
    }

    /// The headers of clients' requests that some worker asks for.
    fn headers(&self) -> Arc<[Arc<str>]> {
        let workers = self.workers.values();
        let catalogs = workers
            .filter(|worker| self.settings.admits(&worker.announcement.pool))
            .filter_map(|worker| worker.announcement.catalog.as_deref());
        let names: BTreeSet<&Arc<str>> = catalogs.flat_map(|catalog| &catalog.headers).collect();
        names.into_iter().cloned().collect()
    }

    fn merge(&mut self, config: &Config, before: &Catalog) -> (Arc<Catalog>, Arc<[Pool]>) {
        let compiled = |(name, listed): (&Arc<str>, &Listed)| {
            Some(Pool {
                name: name.clone(),
                compiled: listed.compiled.clone()?,
            })
        };
        let pools: Vec<Pool> = self.pools.iter().filter_map(compiled).collect();
        let now = Instant::now();
        let missing = |name: &str| match pools.iter().any(|pool| *pool.name == *name) {
            true => None,
            false => self.picture.waits_until(name).filter(|until| now < *until),
        };
        let is_missing = |name: &str| missing(name).is_some();
        let keepers = Keepers::of(&pools, &self.settings, before, &self.agreed, &is_missing);
        self.reserved_until = self.agreed.values().filter_map(|name| missing(name)).min();
        let audience = Audience::Everybody;
        let catalog = Catalog::merge(&pools, config, &self.settings, keepers, audience);
        for conflict in &catalog.conflicts {
            if !before.conflicts.contains(conflict) {
                tracing::error!(%conflict, "two pools offer the same thing");
            }
        }
        (Arc::new(catalog), pools.into())
    }
}

impl Listed {
    /// Compiles the newest version, if it or what is made of it is another; whether it is. Without workers that is the one
    /// which was compiled last.
    fn compile(&mut self, name: &Arc<str>, settings: &PoolConfig) -> bool {
        let before = self.compiled.as_deref();
        let newest = self.versions.newest();
        let Some(newest) = newest.or(before.map(|before| &before.source)) else {
            return false;
        };
        let as_before = self.settings == *settings;
        if before.is_some_and(|before| as_before && same(&before.source, newest)) {
            return false;
        }
        self.recalled &= before.is_some_and(|before| same(&before.source, newest));
        let compiled = CompiledPool::new(name, Arc::clone(newest), before, settings);
        self.compiled = Some(Arc::new(compiled));
        self.settings = settings.clone();
        true
    }
}

/// The headers that a worker asks for.
fn asked(said: &Announcement) -> Arc<[Arc<str>]> {
    let catalog = said.catalog.as_deref();
    catalog.map_or_else(Arc::default, |catalog| catalog.headers.as_slice().into())
}

/// Whether the tools, the resources with their templates, and the prompts differ.
fn differences(old: &PoolCatalog, new: &PoolCatalog) -> [bool; 3] {
    [
        old.tools != new.tools,
        old.resources != new.resources || old.resource_templates != new.resource_templates,
        old.prompts != new.prompts,
    ]
}
