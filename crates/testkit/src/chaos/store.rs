//! The Redis of a run: a single server, a master with a replica, or a Redis Cluster.

use super::Fault;
use crate::cluster::Cluster;
use crate::redis::Redis;
use crate::redis_cluster::RedisCluster;
use crate::redis_sentinel::RedisSentinel;

#[derive(Debug)]
pub(super) enum Store {
    /// A single server that the cluster starts, unless everything runs in one process.
    Own,
    /// A master with a replica.
    Sentinel(Box<RedisSentinel>),
    /// Masters with one replica each.
    Cluster(RedisCluster),
}

impl Store {
    pub(super) async fn start(fault: Fault) -> anyhow::Result<Self> {
        Ok(match fault {
            Fault::Sentinel => Self::Sentinel(Box::new(RedisSentinel::start().await?)),
            Fault::RedisCluster => Self::Cluster(RedisCluster::start_with(1).await?),
            _ => Self::Own,
        })
    }

    /// The URL, or `None` if the cluster starts the server.
    pub(super) fn url(&self) -> Option<String> {
        match self {
            Self::Own => None,
            Self::Sentinel(redis) => Some(redis.url()),
            Self::Cluster(redis) => Some(redis.url()),
        }
    }

    /// Returns all current masters.
    ///
    /// # Errors
    ///
    /// If a server does not answer.
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
