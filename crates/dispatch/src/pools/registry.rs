//! The register of workers and their announcements.

mod listed;
mod offered;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shoal_ports::{Announcement, OwnLists, PoolCatalog, Worker, WorkerId};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::listed::Listed;
use super::Circuit;
use super::departed::Departed;
use crate::catalog::AgreedNames;
use crate::config::{Config, PoolConfig, PoolSettings};
use crate::picture::Picture;

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
    /// Pools that may scale to zero, and whose workers have all announced the pool's removal. The catalogs that the store remembers
    /// for them are out of date.
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
}

/// Whether the tools, the resources with their templates, and the prompts differ.
fn differences(old: &PoolCatalog, new: &PoolCatalog) -> [bool; 3] {
    [
        old.tools != new.tools,
        old.resources != new.resources || old.resource_templates != new.resource_templates,
        old.prompts != new.prompts,
    ]
}
