use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::MemoryStore;
use crate::{Membership, NodeId, NodeInfo, StoreError};

#[async_trait]
impl Membership for MemoryStore {
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError> {
        let until = Instant::now() + life;
        self.data
            .nodes
            .insert(node.id.clone(), (node.clone(), until));
        Ok(())
    }

    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError> {
        self.data.nodes.remove(node);
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError> {
        let now = Instant::now();
        self.data.nodes.retain(|_, (_, until)| *until > now);
        let nodes = self.data.nodes.iter().map(|entry| entry.value().0.clone());
        Ok(nodes.collect())
    }

    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError> {
        *self.data.pools.lock() = Some((pools.to_vec(), Instant::now() + life));
        Ok(())
    }

    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError> {
        let now = Instant::now();
        let mut pools = self.data.pools.lock();
        let living = pools.take().filter(|(_, until)| *until > now);
        *pools = living;
        Ok(pools
            .as_ref()
            .map_or(Vec::new(), |(pools, _)| pools.clone()))
    }

    async fn remember_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError> {
        let until = Instant::now() + life;
        let remembered = (catalog.to_vec(), until);
        self.data.catalogs.insert(pool.to_owned(), remembered);
        Ok(())
    }

    async fn keep_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError> {
        let now = Instant::now();
        let mut kept =
            (self.data.catalogs.entry(pool.to_owned())).or_insert_with(|| (Vec::new(), now));
        let (known, until) = kept.value_mut();
        if *until <= now {
            *known = catalog.to_vec();
        }
        *until = now + life;
        Ok(())
    }

    async fn forget_catalog(&self, pool: &str) -> Result<(), StoreError> {
        self.data.catalogs.remove(pool);
        Ok(())
    }

    async fn remembered_catalog(&self, pool: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let now = Instant::now();
        self.data.catalogs.retain(|_, (_, until)| *until > now);
        let found = self.data.catalogs.get(pool);
        Ok(found.map(|entry| entry.value().0.clone()))
    }

    async fn settle_names(
        &self,
        contested: &BTreeMap<String, String>,
        pools: &[String],
        life: Duration,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let now = Instant::now();
        let mut names = self.data.names.lock();
        let before = names.take().filter(|(_, until)| *until > now);
        let before = before.map(|(names, _)| names).unwrap_or_default();
        let settled: BTreeMap<_, _> = contested
            .iter()
            .map(|(name, pool)| {
                let kept = before.get(name).filter(|pool| pools.contains(pool));
                (name.clone(), kept.unwrap_or(pool).clone())
            })
            .collect();
        *names = Some((settled.clone(), now + life));
        Ok(settled)
    }

    async fn settled_names(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let now = Instant::now();
        let names = self.data.names.lock();
        let living = names.as_ref().filter(|(_, until)| *until > now);
        Ok(living.map(|(names, _)| names.clone()).unwrap_or_default())
    }
}
