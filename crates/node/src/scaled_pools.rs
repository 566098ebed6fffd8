//! Keeps in the store what the pools with `pools.<name>.scale_to_zero` offer, so that a node that starts while such a pool has no
//! worker lists it too.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use shoal_dispatch::{Dispatch, Memorable};
use shoal_ports::{Membership, PoolCatalog};
use shoal_rpc::{decode_catalog, encode_catalog};
use tokio::time::{Instant, sleep, timeout};

/// How long the store remembers a pool of which no node says anything any more.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How often it is told of one that is as it was.
const REMIND: Duration = Duration::from_secs(3_600);
/// How often it is asked for one that is not known, and told what it could not be told.
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
    /// The catalog of each pool that the store has, and when it was written.
    told: HashMap<Arc<str>, (Arc<PoolCatalog>, Instant)>,
    /// The removed pools that it was told to forget.
    forgotten: BTreeSet<Arc<str>>,
    too_large: BTreeSet<Arc<str>>,
}

impl ScaledPools {
    /// Has `dispatch` list what the store remembers.
    pub(crate) async fn recall(store: Arc<dyn Membership>, dispatch: Dispatch) -> Self {
        let pools = Self {
            store,
            dispatch,
            told: HashMap::new(),
            forgotten: BTreeSet::new(),
            too_large: BTreeSet::new(),
        };
        pools.ask().await;
        pools
    }

    /// Goes on with that, and has the store remember what pools offer, for as long as it is polled.
    pub(crate) async fn follow(mut self) {
        let mut changes = self.dispatch.changes();
        loop {
            let is_told = self.tell().await;
            let pause = match is_told && self.dispatch.unknown_scaled_pools().is_empty() {
                true => REMIND,
                false => ASK_AGAIN,
            };
            if timeout(pause, changes.changed()).await.is_ok() {
                sleep(GATHERED).await;
            }
            self.ask().await;
        }
    }

    /// Asks for the pools that are not known here.
    async fn ask(&self) {
        let mut found = Vec::new();
        for pool in self.dispatch.unknown_scaled_pools() {
            let asked = timeout(PATIENCE, self.store.remembered_catalog(&pool)).await;
            match asked {
                Ok(Ok(Some(bytes))) => match decode_catalog(&bytes) {
                    Some(catalog) => found.push((pool, Arc::new(catalog))),
                    None => {
                        tracing::warn!(pool, "what the store remembers of a pool cannot be read")
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

    /// Has the store forget the pools that their workers have removed; whether it has.
    async fn forget(&mut self) -> bool {
        let gone = self.dispatch.to_forget();
        self.forgotten.retain(|pool| gone.contains(pool));
        for pool in gone {
            if self.forgotten.contains(&pool) {
                continue;
            }
            match timeout(PATIENCE, self.store.forget_catalog(&pool)).await {
                Ok(Ok(())) => {
                    self.forgotten.insert(pool);
                }
                Ok(Err(error)) => {
                    tracing::warn!(%pool, %error, "could not have the store forget a pool that is removed; trying on");
                    return false;
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Tells the store what is new, and what was told long ago; whether it knows all of that now.
    async fn tell(&mut self) -> bool {
        if !self.forget().await {
            return false;
        }
        let known = self.dispatch.to_remember();
        self.told
            .retain(|pool, _| known.iter().any(|it| it.pool == *pool));
        for Memorable {
            pool,
            catalog,
            is_news,
        } in known
        {
            let before = self.told.get(&pool);
            let before = before.filter(|(told, _)| Arc::ptr_eq(told, &catalog));
            if before.is_some_and(|(_, at)| at.elapsed() < REMIND) {
                continue;
            }
            // Another node may have told of something newer since.
            let replaces = is_news && before.is_none();
            let bytes = encode_catalog(&catalog);
            if bytes.len() > LARGEST {
                if self.too_large.insert(pool.clone()) {
                    let size = bytes.len();
                    tracing::warn!(%pool, size, limit = LARGEST, "a pool offers too much to be remembered: a node that starts while it has no worker does not list it");
                }
                continue;
            }
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
            match timeout(PATIENCE, telling).await {
                Ok(Ok(())) => {
                    self.told.insert(pool, (catalog, Instant::now()));
                }
                Ok(Err(error)) => {
                    tracing::warn!(%pool, %error, "could not have the store remember what a pool offers; trying on");
                    return false;
                }
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shoal_dispatch::{Config, Dispatch, PoolConfig, ScaleToZero};
    use shoal_ports::memory::{MemoryLimits, MemoryStore};
    use shoal_ports::{Membership, PoolCatalog};
    use shoal_protocol::{KeyRing, SealKey};
    use shoal_rpc::encode_catalog;

    use super::{REMEMBERED, ScaledPools};

    fn encoded(instructions: &str) -> Vec<u8> {
        encode_catalog(&PoolCatalog {
            instructions: Some(instructions.into()),
            ..PoolCatalog::default()
        })
    }

    #[tokio::test]
    async fn what_was_only_recalled_replaces_nothing_and_is_kept() {
        let store: Arc<dyn Membership> = Arc::new(MemoryStore::new(MemoryLimits::default()));
        let pool = PoolConfig {
            scale_to_zero: Some(ScaleToZero::default()),
            ..PoolConfig::default()
        };
        let config = Config {
            pools: [("zero".to_owned(), pool)].into(),
            ..Config::default()
        };
        let keys = KeyRing::new(vec![SealKey::from_secret(b"the secret of every test")]);
        let dispatch = Dispatch::new(config, keys);
        let remember = |text| {
            let (store, bytes) = (store.clone(), encoded(text));
            async move { store.remember_catalog("zero", &bytes, REMEMBERED).await }
        };
        remember("old").await.unwrap();
        let mut pools = ScaledPools::recall(store.clone(), dispatch.clone()).await;
        assert_eq!(dispatch.to_remember().len(), 1);
        // Another node has heard something newer.
        remember("new").await.unwrap();
        assert!(pools.tell().await);
        let remembered = async || store.remembered_catalog("zero").await.unwrap();
        assert_eq!(remembered().await, Some(encoded("new")));
        // A store that has lost it.
        store.forget_catalog("zero").await.unwrap();
        let mut pools = ScaledPools::recall(store.clone(), dispatch.clone()).await;
        assert!(pools.tell().await);
        assert_eq!(remembered().await, Some(encoded("old")));
    }
}
