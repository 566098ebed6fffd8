//! Stores the offers of pools that may have no worker (`pools.<name>.scale_to_zero`), so that a node that starts while
//! a pool has no worker still lists the pool.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use shoal_dispatch::{Dispatch, Memorable};
use shoal_ports::{Membership, PoolCatalog, StoreError};
use shoal_rpc::{decode_catalog, encode_catalog};
use tokio::time::{Instant, sleep, timeout};

/// How long the store keeps the offer of a pool that no node confirms.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Interval for unchanged offers.
const REMIND: Duration = Duration::from_secs(3_600);
/// How often a node asks for unknown pools, and retries failed writes.
const ASK_AGAIN: Duration = Duration::from_secs(10);
const GATHERED: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(2);
const LARGEST: usize = 4 << 20;

pub(crate) struct ScaledPools {
    store: Arc<dyn Membership>,
    dispatch: Dispatch,
    /// With the time of storing.
    told: HashMap<Arc<str>, (Arc<PoolCatalog>, Instant)>,
    forgotten: BTreeSet<Arc<str>>,
    too_large: BTreeSet<Arc<str>>,
    unreadable: BTreeSet<String>,
    failing: bool,
}

impl ScaledPools {
    pub(crate) async fn recall(store: Arc<dyn Membership>, dispatch: Dispatch) -> Self {
        let mut pools = Self {
            store,
            dispatch,
            told: HashMap::new(),
            forgotten: BTreeSet::new(),
            too_large: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            failing: false,
        };
        pools.ask().await;
        pools
    }

    /// Keeps the store up to date until the future is dropped.
    pub(crate) async fn follow(mut self) {
        let mut changes = self.dispatch.changes();
        loop {
            self.write().await;
            let is_done = !self.failing && self.dispatch.unknown_scaled_pools().is_empty();
            let pause = if is_done { REMIND } else { ASK_AGAIN };
            if timeout(pause, changes.changed()).await.is_ok() {
                sleep(GATHERED).await;
            }
            self.ask().await;
        }
    }

    async fn ask(&mut self) {
        let mut found = Vec::new();
        let unknown = self.dispatch.unknown_scaled_pools();
        self.unreadable.retain(|pool| unknown.contains(pool));
        for pool in unknown {
            let asked = timeout(PATIENCE, self.store.remembered_catalog(&pool)).await;
            match asked {
                Ok(Ok(Some(bytes))) => match decode_catalog(&bytes) {
                    Some(catalog) => found.push((pool, Arc::new(catalog))),
                    None if self.unreadable.contains(&pool) => {}
                    None => {
                        tracing::warn!(
                            pool,
                            "the catalog of a pool in the store cannot be decoded"
                        );
                        self.unreadable.insert(pool);
                    }
                },
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    tracing::debug!(pool, %error, "could not ask what a pool offers");
                    break;
                }
                Err(_) => break,
            }
        }
        if !found.is_empty() {
            self.dispatch.recall(found);
        }
    }

    async fn write(&mut self) {
        let mut written = self.forget().await;
        if written.is_ok() {
            written = self.tell().await;
        }
        if let Err((pool, error)) = &written
            && !self.failing
        {
            tracing::warn!(%pool, error, "cannot write what a pool offers to the store; trying again");
        }
        self.failing = written.is_err();
    }

    /// Removes from the store the pools that their workers removed.
    ///
    /// # Errors
    ///
    /// The first pool that failed, and why.
    async fn forget(&mut self) -> Result<(), (Arc<str>, String)> {
        let gone = self.dispatch.to_forget();
        self.forgotten.retain(|pool| gone.contains(pool));
        for pool in gone {
            if self.forgotten.contains(&pool) {
                continue;
            }
            if let Err(error) = confirmed(self.store.forget_catalog(&pool)).await {
                return Err((pool, error));
            }
            self.forgotten.insert(pool);
        }
        Ok(())
    }

    /// Stores new offers, and confirms old ones.
    ///
    /// # Errors
    ///
    /// The first pool that failed, and why.
    async fn tell(&mut self) -> Result<(), (Arc<str>, String)> {
        let known = self.dispatch.to_remember();
        self.told
            .retain(|pool, _| known.iter().any(|it| it.pool == *pool));
        self.too_large
            .retain(|pool| known.iter().any(|it| it.pool == *pool));
        for Memorable {
            pool,
            catalog,
            replaces,
        } in known
        {
            let before = self.told.get(&pool);
            let before = before.filter(|(told, _)| Arc::ptr_eq(told, &catalog));
            if before.is_some_and(|(_, at)| at.elapsed() < REMIND) {
                continue;
            }
            // A confirmation must not replace a newer offer that another node has stored meanwhile.
            let replaces = replaces && before.is_none();
            let bytes = encode_catalog(&catalog);
            if bytes.len() > LARGEST {
                if self.too_large.insert(pool.clone()) {
                    let size = bytes.len();
                    tracing::warn!(%pool, size, limit = LARGEST, "a pool offers too much to be remembered: a node that starts while it has no worker does not list it");
                }
                continue;
            }
            self.too_large.remove(&pool);
            let telling = async {
                match replaces {
                    true => {
                        (self.store)
                            .remember_catalog(&pool, &bytes, REMEMBERED)
                            .await
                    }
                    false => self.store.keep_catalog(&pool, &bytes, REMEMBERED).await,
                }
            };
            if let Err(error) = confirmed(telling).await {
                return Err((pool, error));
            }
            self.told.insert(pool, (catalog, Instant::now()));
        }
        Ok(())
    }
}

/// # Errors
///
/// Why the store did not confirm the step.
async fn confirmed(step: impl Future<Output = Result<(), StoreError>>) -> Result<(), String> {
    match timeout(PATIENCE, step).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(late) => Err(late.to_string()),
    }
}

#[cfg(test)]
mod tests;
