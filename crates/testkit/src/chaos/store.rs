use super::Fault;
use crate::cluster::Cluster;
use crate::redis::Redis;
use crate::redis_cluster::RedisCluster;
use crate::redis_sentinel::RedisSentinel;

#[derive(Debug)]
pub(super) enum Store {
    /// A Redis that the cluster starts, unless everything runs in one process.
    Own,
    Sentinel(Box<RedisSentinel>),
    Cluster(RedisCluster),
}

impl Store {
    pub(super) async fn start(fault: Fault) -> anyhow::Result<Self> {
        Ok(match fault {
            Fault::Sentinel => Self::Sentinel(Box::new(RedisSentinel::start().await?)),
            Fault::RedisCluster => Self::Cluster(RedisCluster::start().await?),
            _ => Self::Own,
        })
    }

    pub(super) fn url(&self) -> Option<String> {
        match self {
            Self::Own => None,
            Self::Sentinel(redis) => Some(redis.url()),
            Self::Cluster(redis) => Some(redis.url()),
        }
    }

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
