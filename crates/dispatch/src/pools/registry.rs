//! The register of workers and their announcements.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_ports::{Announcement, PoolCatalog, ServerFacts, Worker, WorkerId};
use tokio::task::AbortHandle;

use super::{Member, PoolView, View};
use crate::catalog::{Catalog, CompiledPool, Pool};
use crate::config::Config;

/// Every worker with its newest announcement, and what was compiled of them.
#[derive(Default)]
pub(crate) struct Registry {
    workers: BTreeMap<WorkerId, Registered>,
    compiled: BTreeMap<Arc<str>, Arc<CompiledPool>>,
    versions: [u64; 3],
}

struct Registered {
    worker: Arc<dyn Worker>,
    announcement: Announcement,
    /// How often its backend had announced changes when it was last heard of.
    generations: Option<[u64; 3]>,
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
    /// Takes a worker in, in place of an earlier one of the same id.
    pub(crate) fn add(&mut self, worker: Arc<dyn Worker>, announcement: Announcement) {
        let id = announcement.worker.clone();
        let registered = Registered {
            worker,
            generations: announcement.catalog.as_ref().map(|c| c.generations),
            announcement,
            tasks: Vec::new(),
        };
        if self.workers.insert(id.clone(), registered).is_some() {
            tracing::info!(worker = %id, "a worker was replaced");
        }
    }

    /// Ties tasks to a worker: they end when it leaves.
    pub(crate) fn keep(&mut self, worker: &WorkerId, tasks: [AbortHandle; 2]) {
        match self.workers.get_mut(worker) {
            Some(registered) => registered.tasks.extend(tasks),
            None => tasks.iter().for_each(AbortHandle::abort),
        }
    }

    /// Takes a worker out; whether it was there.
    pub(crate) fn remove(&mut self, id: &WorkerId) -> bool {
        self.workers.remove(id).is_some()
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
            // A backend that starts over counts from zero; only the difference means something.
            for (at, version) in self.versions.iter_mut().enumerate() {
                if before.is_some_and(|before| before[at] != catalog.generations[at]) {
                    *version += 1;
                }
            }
        }
        let appears = registered.announcement.catalog.is_none() && announcement.catalog.is_some();
        registered.announcement = announcement;
        Some(appears)
    }

    /// The view of what is registered now, with the server's facts.
    pub(crate) fn view(&mut self, config: &Config, before: &View) -> (View, ServerFacts) {
        let mut pools: BTreeMap<Arc<str>, PoolView> = BTreeMap::new();
        let mut catalogs: BTreeMap<Arc<str>, Arc<PoolCatalog>> = BTreeMap::new();
        for (id, registered) in &self.workers {
            let said = &registered.announcement;
            let pool = pools.entry(said.pool.clone()).or_default();
            let member = Member {
                id: id.clone(),
                worker: registered.worker.clone(),
                detail: said.detail.clone(),
            };
            match &said.catalog {
                Some(catalog) => {
                    pool.ready.push(member);
                    catalogs
                        .entry(said.pool.clone())
                        .or_insert_with(|| catalog.clone());
                }
                None => pool.waiting.push(member),
            }
        }
        let changed = self.compile(&pools, catalogs);
        for (name, pool) in &mut pools {
            pool.announced = self.compiled.contains_key(name);
        }
        let catalog = if changed {
            self.merge(config, &before.catalog)
        } else {
            before.catalog.clone()
        };
        let facts = ServerFacts {
            server_info: catalog.server_info.clone(),
            capabilities: catalog.capabilities.clone(),
            instructions: catalog.instructions.clone(),
            versions: self.versions,
        };
        (View { catalog, pools }, facts)
    }

    /// Brings the compiled pools up to date; whether any changed. A pool whose workers are all away
    /// for a moment keeps what it last said, so that its tools do not flicker.
    fn compile(
        &mut self,
        pools: &BTreeMap<Arc<str>, PoolView>,
        catalogs: BTreeMap<Arc<str>, Arc<PoolCatalog>>,
    ) -> bool {
        let count = self.compiled.len();
        let mut versions = self.versions;
        let mut bump = |old: &PoolCatalog, new: &PoolCatalog| {
            for (version, changed) in versions.iter_mut().zip(differences(old, new)) {
                *version += u64::from(changed);
            }
        };
        let nothing = PoolCatalog::default();
        self.compiled.retain(|name, compiled| {
            let stays = pools.contains_key(name);
            if !stays {
                bump(&compiled.source, &nothing);
            }
            stays
        });
        let mut changed = self.compiled.len() != count;
        for (name, catalog) in catalogs {
            let before = self.compiled.get(&name).map(Arc::as_ref);
            let known = before.map_or(&nothing, |before| &before.source);
            if before.is_some() && *known == *catalog {
                continue;
            }
            bump(known, &catalog);
            changed = true;
            let compiled = Arc::new(CompiledPool::new(&name, catalog, before));
            self.compiled.insert(name, compiled);
        }
        self.versions = versions;
        changed
    }

    fn merge(&self, config: &Config, before: &Catalog) -> Arc<Catalog> {
        let pools: Vec<Pool> = self
            .compiled
            .iter()
            .map(|(name, compiled)| Pool {
                name: name.clone(),
                compiled: compiled.clone(),
            })
            .collect();
        let catalog = Catalog::merge(&pools, config);
        for conflict in &catalog.conflicts {
            if !before.conflicts.contains(conflict) {
                tracing::error!(%conflict, "two pools offer the same thing");
            }
        }
        Arc::new(catalog)
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
