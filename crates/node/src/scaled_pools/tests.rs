//! Tests of what the store keeps of pools that may have no worker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use shoal_dispatch::{Config, Dispatch, ScaleToZero};
use shoal_ports::memory::{MemoryLimits, MemoryStore};
use shoal_ports::{Membership, NodeId, NodeInfo, PoolCatalog, StoreError};
use shoal_rpc::encode_catalog;
use tokio::time::sleep;

use super::{ASK_AGAIN, REMEMBERED, ScaledPools};
use crate::config::{Backend, Pool, Settings};

/// A store whose first write fails.
struct Failing {
    inner: Arc<dyn Membership>,
    writes: AtomicUsize,
}

impl Failing {
    fn write(&self) -> Result<(), StoreError> {
        match self.writes.fetch_add(1, Ordering::SeqCst) {
            0 => Err(StoreError::Unavailable("away".to_owned())),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Membership for Failing {
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError> {
        self.inner.announce(node, life).await
    }

    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError> {
        self.inner.withdraw(node).await
    }

    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError> {
        self.inner.nodes().await
    }

    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError> {
        self.inner.remember_pools(pools, life).await
    }

    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError> {
        self.inner.remembered_pools().await
    }

    async fn remember_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError> {
        self.write()?;
        self.inner.remember_catalog(pool, catalog, life).await
    }

    async fn keep_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError> {
        self.write()?;
        self.inner.keep_catalog(pool, catalog, life).await
    }

    async fn forget_catalog(&self, pool: &str) -> Result<(), StoreError> {
        self.inner.forget_catalog(pool).await
    }

    async fn remembered_catalog(&self, pool: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.remembered_catalog(pool).await
    }

    async fn settle_names(
        &self,
        contested: &BTreeMap<String, String>,
        pools: &[String],
        life: Duration,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        self.inner.settle_names(contested, pools, life).await
    }

    async fn settled_names(&self) -> Result<BTreeMap<String, String>, StoreError> {
        self.inner.settled_names().await
    }
}

fn memory() -> Arc<dyn Membership> {
    let store = MemoryStore::new(MemoryLimits::default());
    store.into_store().membership
}

/// With a pool that may have no worker, of which nothing is known.
fn dispatch() -> Dispatch {
    let pool = Pool {
        scale_to_zero: Some(ScaleToZero::default()),
        ..Pool::of(Backend::Demo)
    };
    let config = Config {
        pools: BTreeMap::from([("scaled".to_owned(), pool.to_dispatch())]),
        ..Config::default()
    };
    Dispatch::new(config, Settings::default().state_keys.key_ring().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_write_that_failed_is_tried_again_soon() {
    let inner = memory();
    let store = Arc::new(Failing {
        inner,
        writes: AtomicUsize::new(0),
    });
    let dispatch = dispatch();
    let pools = ScaledPools::recall(store.clone(), dispatch.clone()).await;
    dispatch.recall(vec![(
        "scaled".to_owned(),
        Arc::new(PoolCatalog::default()),
    )]);
    let follows = tokio::spawn(pools.follow());
    sleep(ASK_AGAIN * 2).await;
    assert_eq!(store.writes.load(Ordering::SeqCst), 2);
    assert!(store.remembered_catalog("scaled").await.unwrap().is_some());
    follows.abort();
}

#[tokio::test]
async fn a_catalog_that_cannot_be_decoded_is_told_once() {
    let store = memory();
    let week = Duration::from_secs(600_000);
    let written = store.remember_catalog("scaled", b"\xff\xff", week).await;
    written.unwrap();
    let dispatch = dispatch();
    let mut pools = ScaledPools::recall(store, dispatch.clone()).await;
    assert_eq!(pools.unreadable.len(), 1);
    pools.ask().await;
    assert_eq!(pools.unreadable.len(), 1);
    assert_eq!(dispatch.unknown_scaled_pools(), ["scaled"]);
}

#[tokio::test]
async fn what_was_only_recalled_replaces_nothing_and_is_kept() {
    let store = memory();
    let dispatch = dispatch();
    let encoded = |text: &str| {
        encode_catalog(&PoolCatalog {
            instructions: Some(text.into()),
            ..PoolCatalog::default()
        })
    };
    let remember = async |text| {
        let bytes = encoded(text);
        let written = store.remember_catalog("scaled", &bytes, REMEMBERED);
        written.await.unwrap();
    };
    let remembered = async || store.remembered_catalog("scaled").await.unwrap();
    remember("old").await;
    let mut pools = ScaledPools::recall(store.clone(), dispatch.clone()).await;
    assert_eq!(dispatch.to_remember().len(), 1);
    // Another node has heard something newer.
    remember("new").await;
    pools.write().await;
    assert!(!pools.failing);
    assert_eq!(remembered().await, Some(encoded("new")));
    // A store that has lost it.
    store.forget_catalog("scaled").await.unwrap();
    let mut pools = ScaledPools::recall(store.clone(), dispatch.clone()).await;
    pools.write().await;
    assert_eq!(remembered().await, Some(encoded("old")));
}
