use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redis::Value;
use shoal_ports::{Membership, NodeId, NodeInfo, StoreError};

use crate::measure::measured;
use crate::millis::millis;
use crate::reply::{fields, optional, parts, unexpected};
use crate::store::RedisStore;

#[async_trait]
impl Membership for RedisStore {
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError> {
        measured("membership.announce", async {
            let what = serde_json::to_vec(node).map_err(|_| unexpected())?;
            let key = self.inner.keys.nodes();
            let announced = self
                .inner
                .run(&self.inner.scripts.announce, &key, |command| {
                    command.arg(node.id.as_str()).arg(what).arg(millis(life));
                });
            announced.await.map(drop)
        })
        .await
    }

    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError> {
        measured("membership.withdraw", async {
            let key = self.inner.keys.nodes();
            let mut command = redis::cmd("HDEL");
            command.arg(&key).arg(node.as_str());
            self.inner.connections.ask(&key, command).await.map(drop)
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError> {
        measured("membership.nodes", async {
            let key = self.inner.keys.nodes();
            let said = self.inner.run(&self.inner.scripts.nodes, &key, |_| {});
            let mut nodes = Vec::new();
            for what in parts(said.await?)?.rest() {
                match serde_json::from_slice(&what?) {
                    Ok(node) => nodes.push(node),
                    // Another release wrote the announcement.
                    Err(error) => tracing::debug!(%error, "a node's announcement cannot be read"),
                }
            }
            Ok(nodes)
        })
        .await
    }

    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError> {
        measured("membership.remember_pools", async {
            let what = serde_json::to_vec(pools).map_err(|_| unexpected())?;
            let key = self.inner.keys.pools();
            let mut command = redis::cmd("SET");
            command.arg(&key).arg(what).arg("PX").arg(millis(life));
            self.inner.connections.ask(&key, command).await.map(drop)
        })
        .await
    }

    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError> {
        measured("membership.remembered_pools", async {
            let key = self.inner.keys.pools();
            let mut command = redis::cmd("GET");
            command.arg(&key);
            let said = optional(self.inner.connections.ask(&key, command).await?)?;
            let pools = said.map(|said| serde_json::from_slice(&said).unwrap_or_default());
            Ok(pools.unwrap_or_default())
        })
        .await
    }

    async fn remember_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError> {
        measured("membership.remember_catalog", async {
            let key = self.inner.keys.catalog(pool);
            let mut command = redis::cmd("SET");
            command.arg(&key).arg(catalog).arg("PX").arg(millis(life));
            self.inner.connections.ask(&key, command).await.map(drop)
        })
        .await
    }

    async fn keep_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError> {
        measured("membership.keep_catalog", async {
            let key = self.inner.keys.catalog(pool);
            let mut longer = redis::cmd("PEXPIRE");
            longer.arg(&key).arg(millis(life));
            if self.inner.connections.ask(&key, longer).await? == Value::Int(1) {
                return Ok(());
            }
            let mut set = redis::cmd("SET");
            set.arg(&key).arg(catalog);
            set.arg("NX").arg("PX").arg(millis(life));
            self.inner.connections.ask(&key, set).await.map(drop)
        })
        .await
    }

    async fn forget_catalog(&self, pool: &str) -> Result<(), StoreError> {
        measured("membership.forget_catalog", async {
            let key = self.inner.keys.catalog(pool);
            let mut command = redis::cmd("UNLINK");
            command.arg(&key);
            self.inner.connections.ask(&key, command).await.map(drop)
        })
        .await
    }

    async fn remembered_catalog(&self, pool: &str) -> Result<Option<Vec<u8>>, StoreError> {
        measured("membership.remembered_catalog", async {
            let key = self.inner.keys.catalog(pool);
            let mut command = redis::cmd("GET");
            command.arg(&key);
            let said = optional(self.inner.connections.ask(&key, command).await?)?;
            Ok(said.map(Into::into))
        })
        .await
    }

    async fn settle_names(
        &self,
        contested: &BTreeMap<String, String>,
        pools: &[String],
        life: Duration,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        measured("membership.settle_names", async {
            let key = self.inner.keys.names();
            let said = self
                .inner
                .run(&self.inner.scripts.settle_names, &key, |command| {
                    command.arg(millis(life)).arg(pools.len()).arg(pools);
                    for (name, pool) in contested {
                        command.arg(name).arg(pool);
                    }
                });
            named(said.await?)
        })
        .await
    }

    async fn settled_names(&self) -> Result<BTreeMap<String, String>, StoreError> {
        measured("membership.settled_names", async {
            let key = self.inner.keys.names();
            let mut command = redis::cmd("HGETALL");
            command.arg(&key);
            named(self.inner.connections.ask(&key, command).await?)
        })
        .await
    }
}

fn named(said: Value) -> Result<BTreeMap<String, String>, StoreError> {
    let text = |bytes: Bytes| String::from_utf8(bytes.into()).map_err(|_| unexpected());
    let names = fields(said)?.into_iter();
    names
        .map(|(name, pool)| Ok((text(name)?, text(pool)?)))
        .collect()
}
