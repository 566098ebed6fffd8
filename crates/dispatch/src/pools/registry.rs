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

pub(crate) struct Registry {
    workers: BTreeMap<WorkerId, Registered>,
    pools: BTreeMap<Arc<str>, Listed>,
    /// Counts changes that workers announced although their lists stayed the same.
    announced: [u64; 3],
    settings: Arc<PoolSettings>,
    picture: Picture,
    agreed: Arc<AgreedNames>,
    /// The end of the earliest reservation. Agreed names are reserved for pools that have not joined yet.
    reserved_until: Option<Instant>,
    merges: bool,
    departed: Departed,
    /// Removed pools that may scale to zero. Their catalogs in the store are void.
    gone: BTreeSet<Arc<str>>,
}

struct Registered {
    worker: Arc<dyn Worker>,
    announcement: Announcement,
    generations: Option<[u64; 3]>,
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

    /// Returns whether the view must be rebuilt.
    pub(crate) fn expect(&mut self, pools: &BTreeSet<String>) -> bool {
        let is_news = self.picture.expect(pools, &self.settings);
        let ends = |until| is_news || Instant::now() >= until;
        self.merges |= self.reserved_until.is_some_and(ends);
        is_news || self.merges
    }

    pub(crate) fn agree(&mut self, names: &AgreedNames) -> bool {
        let is_news = *self.agreed != *names;
        if is_news {
            self.agreed = Arc::new(names.clone());
            self.merges = true;
        }
        is_news
    }

    pub(crate) fn configure(&mut self, pools: BTreeMap<String, Option<PoolConfig>>) {
        Arc::make_mut(&mut self.settings).change(pools);
    }

    pub(crate) fn add(
        &mut self,
        worker: Arc<dyn Worker>,
        announcement: Announcement,
        config: &Config,
    ) {
        let id = announcement.worker.clone();
        self.departed.came(&id);
        // A reconnect must not reset the worker's circuit.
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

    /// The tasks are aborted when the worker leaves.
    pub(crate) fn keep(&mut self, worker: &WorkerId, tasks: [AbortHandle; 3]) {
        match self.workers.get_mut(worker) {
            Some(registered) => registered.tasks.extend(tasks),
            None => tasks.iter().for_each(AbortHandle::abort),
        }
    }

    pub(crate) fn remove(&mut self, id: &WorkerId) -> Option<Arc<str>> {
        let registered = self.workers.remove(id)?;
        self.departed.left(id);
        let pool = registered.announcement.pool.clone();
        // Read here, because `hear` may not have got the announcement of the removal yet.
        let removed = registered.worker.announcement().borrow().is_removed();
        if let Some(listed) = self.pools.get_mut(&pool) {
            listed.removed = removed;
        }
        Some(pool)
    }

    pub(crate) fn has_left(&self, id: &WorkerId) -> bool {
        self.departed.has(id)
    }

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

    /// Returns whether the worker became ready, or `None` if it is not registered or was replaced.
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
            // Lower generations are no change, because a restarted backend counts from zero.
            for (at, count) in self.announced.iter_mut().enumerate() {
                let again = before.is_some_and(|before| before[at] < catalog.generations[at]);
                *count += u64::from(again && !changed[at]);
            }
        }
        let appears = registered.announcement.catalog.is_none() && announcement.catalog.is_some();
        registered.announcement = announcement;
        Some(appears)
    }

    pub(crate) fn hear_own(&mut self, worker: &Arc<dyn Worker>, own: OwnLists) -> bool {
        let id = worker.announcement().borrow().worker.clone();
        let registered = self.workers.get_mut(&id);
        let registered = registered.filter(|it| Arc::ptr_eq(&it.worker, worker));
        registered.is_some_and(|it| std::mem::replace(&mut it.own, own.clone()) != own)
    }
}

fn differences(old: &PoolCatalog, new: &PoolCatalog) -> [bool; 3] {
    [
        old.tools != new.tools,
        old.resources != new.resources || old.resource_templates != new.resource_templates,
        old.prompts != new.prompts,
    ]
}
