//! The Redis of a run: one, one with a replica, or a Redis Cluster.

use super::Fault;
use crate::cluster::Cluster;
use crate::redis::Redis;
use crate::redis_cluster::RedisCluster;
use crate::redis_sentinel::RedisSentinel;

/// The Redis of a run.
#[derive(Debug)]
pub(super) enum Store {
    /// One that the cluster starts, unless everything is in one process.
    Own,
    /// A master with a replica.
    Sentinel(Box<RedisSentinel>),
    /// Masters with a replica each.
    Cluster(RedisCluster),
}

impl Store {
    /// Starts what a kind of fault takes.
    ///
    /// # Errors
    /// When a server does not start.
    pub(super) async fn start(fault: Fault) -> anyhow::Result<Self> {
        Ok(match fault {
            Fault::Sentinel => Self::Sentinel(Box::new(RedisSentinel::start().await?)),
            Fault::RedisCluster => Self::Cluster(RedisCluster::start_with(1).await?),
            _ => Self::Own,
        })
    }

    /// Its URL, unless the cluster starts it.
    pub(super) fn url(&self) -> Option<String> {
        match self {
            Self::Own => None,
            Self::Sentinel(redis) => Some(redis.url()),
            Self::Cluster(redis) => Some(redis.url()),
        }
    }

    /// Every server that is a master now.
    ///
    /// # Errors
    /// When they do not say.
    pub(super) async fn masters<'a>(
        &'a self,
        cluster: &'a Cluster,
    ) -> anyhow::Result<Vec<&'a Redis>> {
        match self {
            Self::Own => Ok(cluster.redis().into_iter().collect()),
            Self::Sentinel(redis) => Ok(vec![redis.master()]),
            Self::Cluster(redis) => redis.masters().await,
        }
    }
}
