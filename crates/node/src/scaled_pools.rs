//! What pools offer that may have no worker (`pools.<name>.scale_to_zero`), kept in the store: a node that starts while such a
//! pool has none lists it all the same.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use shoal_dispatch::{Dispatch, Memorable};
use shoal_ports::{Membership, PoolCatalog, StoreError};
use shoal_rpc::{decode_catalog, encode_catalog};
use tokio::time::{Instant, sleep, timeout};

/// How long the store remembers a pool of which no node says anything any more.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How often it is told of one that is as it was.
const REMIND: Duration = Duration::from_secs(3_600);
/// How often it is asked for a pool that is not known, and a write that failed is tried again.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Several changes in quick succession are one.
const GATHERED: Duration = Duration::from_millis(500);
/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of one pool.
const LARGEST: usize = 4 << 20;

/// Keeps what pools offer.
pub(crate) struct ScaledPools {
    store: Arc<dyn Membership>,
    dispatch: Dispatch,
    /// What the store was told of each, and when.
    told: HashMap<Arc<str>, (Arc<PoolCatalog>, Instant)>,
    /// The removed pools that it was told to forget.
    forgotten: BTreeSet<Arc<str>>,
    /// The pools that offer too much to be remembered.
    too_large: BTreeSet<Arc<str>>,
    /// The unknown pools whose catalog in the store cannot be decoded.
    unreadable: BTreeSet<String>,
    /// Whether the last attempt to write failed.
    failing: bool,
}

impl ScaledPools {
    /// Has `dispatch` list what the store remembers.
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

    /// Goes on with that, and has the store remember what pools offer, for as long as it is polled.
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

    /// Asks for the pools that are not known here.
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

    /// Brings the store up to date, as far as it lets itself.
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

    /// Has the store forget the pools that their workers have removed.
    ///
    /// # Errors
    /// The pool at which the store failed, and how.
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

    /// Tells the store what is new, and what was told long ago.
    ///
    /// # Errors
    /// The pool at which the store failed, and how.
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
            // Another node may have told of something newer since.
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

/// Waits until the store has confirmed a step.
///
/// # Errors
/// Why it has not.
async fn confirmed(step: impl Future<Output = Result<(), StoreError>>) -> Result<(), String> {
    match timeout(PATIENCE, step).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(late) => Err(late.to_string()),
    }
}

#[cfg(test)]
mod tests;
