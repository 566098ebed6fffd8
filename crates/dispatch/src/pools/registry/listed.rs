use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use shoal_ports::PoolCatalog;
use tokio::time::Instant;

use super::{Registered, Registry};
use crate::catalog::CompiledPool;
use crate::config::PoolConfig;
use crate::pools::rollout::{Versions, same};
use crate::remembered::Memorable;

#[derive(Default)]
pub(super) struct Listed {
    pub(super) versions: Versions,
    pub(super) compiled: Option<Arc<CompiledPool>>,
    pub(super) settings: PoolConfig,
    pub(super) vacant_since: Option<Instant>,
    pub(super) removed: bool,
    /// Whether the catalog was recalled from the store and no worker has confirmed it yet.
    pub(super) recalled: bool,
}

impl Registry {
    /// Returns whether the list changed.
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

    pub(crate) fn unknown_scaled(&self) -> Vec<String> {
        let is_unknown = |name: &&String| {
            !self.pools.contains_key(name.as_str()) && !self.gone.contains(name.as_str())
        };
        (self.settings.may_be_vacant())
            .filter(is_unknown)
            .cloned()
            .collect()
    }

    pub(crate) fn to_remember(&self) -> Vec<Memorable> {
        let may_be_vacant = |name: &Arc<str>| self.settings.scale_to_zero(name).is_some();
        let listed = self.pools.iter().filter(|(name, _)| may_be_vacant(name));
        listed
            .filter_map(|(name, listed)| {
                Some(Memorable {
                    pool: name.clone(),
                    catalog: listed.compiled.as_ref()?.source.clone(),
                    replaces: !listed.recalled,
                })
            })
            .collect()
    }

    pub(crate) fn to_forget(&self) -> Vec<Arc<str>> {
        self.gone.iter().cloned().collect()
    }

    pub(super) fn removed(&self) -> BTreeSet<Arc<str>> {
        let said = || self.workers.values().map(|worker| &worker.announcement);
        let named = |removed: bool| {
            let said = said().filter(move |said| said.is_removed() == removed);
            said.map(|said| said.pool.clone())
        };
        let goes_on: BTreeSet<Arc<str>> = named(false).collect();
        named(true).filter(|pool| !goes_on.contains(pool)).collect()
    }

    pub(super) fn forget_dropped(&mut self) {
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

    /// Returns whether any pool changed.
    ///
    /// A pool keeps its catalog while its workers are not ready, so that its tools do not flicker. A pool without
    /// workers keeps it for the lingering time or, if the pool may scale to zero, for ever. Neither applies if the
    /// pool is in `removed` or no longer named.
    pub(super) fn update(&mut self, removed: &BTreeSet<Arc<str>>, now: Instant) -> bool {
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
            let linger = settings.linger.get();
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
                tracing::info!(pool = %name, "removed a pool without workers from the lists");
                listed.compiled.is_some()
            };
            stays
        });
        changed
    }

    pub(crate) fn lingers(&self, pool: &str) -> Option<Duration> {
        let listed = self.pools.get(pool)?;
        listed
            .vacant_since
            .is_some()
            .then(|| self.settings.of(pool).linger.get())
    }
}

impl Listed {
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
