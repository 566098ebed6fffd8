use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shoal_dispatch::{Config, Dispatch, PoolConfig, ScaleToZero};
use shoal_ports::contract::Intercepted;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{Membership, PoolCatalog, StoreError, StreamSettings};
use shoal_rpc::encode_catalog;
use tokio::time::sleep;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_default;
use tracing::{Event, Level, Metadata, Subscriber};

use super::{ASK_AGAIN, LARGEST, REMEMBERED, ScaledPools};
use crate::config::Settings;

#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl Warnings {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn memory() -> Arc<dyn Membership> {
    let store = MemoryStore::new(StreamSettings::default());
    store.into_store().membership
}

fn scaled() -> PoolConfig {
    PoolConfig {
        scale_to_zero: Some(ScaleToZero::default()),
        ..PoolConfig::default()
    }
}

fn dispatch() -> Dispatch {
    let config = Config {
        pools: BTreeMap::from([("scaled".to_owned(), scaled())]),
        ..Config::default()
    };
    Dispatch::new(config, Settings::default().state_keys.key_ring().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_write_that_failed_is_tried_again_soon() {
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = writes.clone();
    let first_write_fails = move |step: &'static str| {
        let is_write = matches!(step, "remember_catalog" | "keep_catalog");
        let fails = is_write && counted.fetch_add(1, Ordering::SeqCst) == 0;
        std::future::ready(match fails {
            true => Err(StoreError::Unavailable("away".to_owned())),
            false => Ok(()),
        })
    };
    let store = Arc::new(Intercepted::new(memory(), first_write_fails));
    let dispatch = dispatch();
    let pools = ScaledPools::recall(store.clone(), dispatch.clone()).await;
    dispatch.recall(vec![(
        "scaled".to_owned(),
        Arc::new(PoolCatalog::default()),
    )]);
    let follows = tokio::spawn(pools.follow());
    sleep(ASK_AGAIN * 2).await;
    assert_eq!(writes.load(Ordering::SeqCst), 2);
    assert!(store.remembered_catalog("scaled").await.unwrap().is_some());
    follows.abort();
}

fn configure(dispatch: &Dispatch, pool: Option<PoolConfig>) {
    dispatch.configure(BTreeMap::from([("scaled".to_owned(), pool)]));
}

#[tokio::test]
async fn a_catalog_that_cannot_be_decoded_is_told_once_for_each_pool() {
    let warnings = Warnings::default();
    let _here = set_default(warnings.clone());
    let store = memory();
    let week = Duration::from_secs(600_000);
    let written = store.remember_catalog("scaled", b"\xff\xff", week).await;
    written.unwrap();
    let dispatch = dispatch();
    let mut pools = ScaledPools::recall(store, dispatch.clone()).await;
    assert_eq!(warnings.count(), 1);
    pools.ask().await;
    assert_eq!(warnings.count(), 1);
    assert_eq!(dispatch.unknown_scaled_pools(), ["scaled"]);
    configure(&dispatch, None);
    pools.ask().await;
    assert!(pools.unreadable.is_empty());
    configure(&dispatch, Some(scaled()));
    pools.ask().await;
    assert_eq!(warnings.count(), 2, "another pool of this name");
}

#[tokio::test]
async fn a_pool_that_offers_too_much_is_told_once_for_each_pool() {
    let warnings = Warnings::default();
    let _here = set_default(warnings.clone());
    let dispatch = dispatch();
    let mut pools = ScaledPools::recall(memory(), dispatch.clone()).await;
    let large = PoolCatalog {
        instructions: Some("x".repeat(LARGEST + 1)),
        ..PoolCatalog::default()
    };
    let large = vec![("scaled".to_owned(), Arc::new(large))];
    dispatch.recall(large.clone());
    for _ in 0..2 {
        pools.write().await;
        assert_eq!(warnings.count(), 1);
    }
    configure(&dispatch, None);
    pools.write().await;
    assert!(pools.too_large.is_empty());
    configure(&dispatch, Some(scaled()));
    dispatch.recall(large);
    pools.write().await;
    assert_eq!(warnings.count(), 2, "another pool of this name");
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
    remember("new").await;
    pools.write().await;
    assert!(!pools.failing);
    assert_eq!(remembered().await, Some(encoded("new")));
    store.forget_catalog("scaled").await.unwrap();
    let mut pools = ScaledPools::recall(store.clone(), dispatch.clone()).await;
    pools.write().await;
    assert_eq!(remembered().await, Some(encoded("old")));
}
