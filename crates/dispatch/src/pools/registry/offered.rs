use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use shoal_ports::{Announcement, ListScope, ServerFacts};
use tokio::time::Instant;

use super::Registry;
use super::listed::Listed;
use crate::catalog::{Audience, Catalog, Keepers, Pool};
use crate::config::Config;
use crate::own::OwnPools;
use crate::pools::{PoolMember, PoolView, View, WorkerFleet, affinity};

const UNNAMED: &str =
    "this node's configuration does not name the pool (catalog.unnamed_pools = false)";

impl Registry {
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
            let member = Arc::new(PoolMember {
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
        let fleet = WorkerFleet {
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

    fn own_pools(&self) -> OwnPools {
        let mut own = OwnPools::default();
        // A listed pool has lists per principal even while no worker is ready.
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

    /// Equal on every node with the same pools, so that a session that moves sees no false changes. Exception: each
    /// node counts for itself the announced changes that left the lists the same.
    fn versions(&self, catalog: &Catalog, config: &Config) -> [u64; 3] {
        let mut versions = catalog.versions;
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
                tracing::error!(%conflict, "two pools offer the same name");
            }
        }
        (Arc::new(catalog), pools.into())
    }
}

fn asked(said: &Announcement) -> Arc<[Arc<str>]> {
    let catalog = said.catalog.as_deref();
    catalog.map_or_else(Arc::default, |catalog| catalog.headers.as_slice().into())
}
