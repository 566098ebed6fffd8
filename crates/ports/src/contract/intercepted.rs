use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;

use crate::{Membership, NodeId, NodeInfo, StoreError};

/// Gets a method's name and runs before it. The hook's error replaces the method's result.
type Before = dyn Fn(&'static str) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync;

/// A membership with a hook before each method, for tests.
pub struct Intercepted {
    inner: Arc<dyn Membership>,
    before: Box<Before>,
}

impl Intercepted {
    /// Wraps a membership.
    pub fn new<F>(
        inner: Arc<dyn Membership>,
        before: impl Fn(&'static str) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), StoreError>> + Send + 'static,
    {
        Self {
            inner,
            before: Box::new(move |step| Box::pin(before(step))),
        }
    }
}

#[async_trait]
impl Membership for Intercepted {
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError> {
        (self.before)("announce").await?;
        self.inner.announce(node, life).await
    }

    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError> {
        (self.before)("withdraw").await?;
        self.inner.withdraw(node).await
    }

    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError> {
        (self.before)("nodes").await?;
        self.inner.nodes().await
    }

    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError> {
        (self.before)("remember_pools").await?;
        self.inner.remember_pools(pools, life).await
    }

    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError> {
        (self.before)("remembered_pools").await?;
        self.inner.remembered_pools().await
    }

    async fn remember_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError> {
        (self.before)("remember_catalog").await?;
        self.inner.remember_catalog(pool, catalog, life).await
    }

    async fn keep_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError> {
        (self.before)("keep_catalog").await?;
        self.inner.keep_catalog(pool, catalog, life).await
    }

    async fn forget_catalog(&self, pool: &str) -> Result<(), StoreError> {
        (self.before)("forget_catalog").await?;
        self.inner.forget_catalog(pool).await
    }

    async fn remembered_catalog(&self, pool: &str) -> Result<Option<Vec<u8>>, StoreError> {
        (self.before)("remembered_catalog").await?;
        self.inner.remembered_catalog(pool).await
    }

    async fn settle_names(
        &self,
        contested: &BTreeMap<String, String>,
        pools: &[String],
        life: Duration,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        (self.before)("settle_names").await?;
        self.inner.settle_names(contested, pools, life).await
    }

    async fn settled_names(&self) -> Result<BTreeMap<String, String>, StoreError> {
        (self.before)("settled_names").await?;
        self.inner.settled_names().await
    }
}
