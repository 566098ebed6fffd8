use std::time::Duration;

use anyhow::{Context as _, bail};
use rand::seq::IndexedRandom as _;

use super::{Deed, Deeds, Fault, Injector};
use crate::chaos::store::Store;
use crate::redis::{Data, Redis};
use crate::redis_sentinel::Newest;

/// Number of ways to fail over, which are taken in turn.
pub(super) const WAYS: usize = 2;

const AWAY: Duration = Duration::from_millis(700);
const LOST: Duration = Duration::from_secs(1);
const REDIS: &str = "redis";

impl<'a> Injector<'a> {
    pub(super) fn redis(&self) -> anyhow::Result<&'a Redis> {
        let redis = self.cluster.redis();
        redis.context("the cluster has no Redis of its own")
    }

    pub(super) async fn break_redis(&mut self, fault: Fault) -> Deeds {
        let (redis, lease) = (self.redis()?, self.options.lease);
        let what = match fault {
            Fault::PauseRedis => {
                redis.pause().await?;
                self.wait_about(lease).await;
                redis.resume().await?;
                "paused"
            }
            Fault::FullRedis => {
                redis.limit_memory(1).await?;
                self.wait_about(lease).await;
                redis.limit_memory(0).await?;
                "without memory"
            }
            Fault::FullDisk => {
                redis.fill_disk().await?;
                self.wait_about(lease).await;
                redis.free_disk().await?;
                "without disk"
            }
            restarted => {
                redis.kill().await?;
                self.wait_about(AWAY).await;
                let (data, what) = match restarted {
                    Fault::RedisWipe => (Data::Lost, Deed::WIPED),
                    _ => (Data::Kept, "restarted"),
                };
                redis.start_again(data).await?;
                what
            }
        };
        Ok(vec![Deed::new(what, REDIS)])
    }

    /// Every other time, the newest writes are lost.
    pub(super) async fn fail_over_by_sentinel(&mut self, turn: usize) -> Deeds {
        let Store::Sentinel(redis) = self.store else {
            bail!("there is no Sentinel")
        };
        let loses = turn.is_multiple_of(WAYS);
        let mut newest = Newest::Kept;
        if loses {
            redis.cut_replica_off().await?;
            self.wait_about(LOST).await;
            newest = Newest::Lost;
        }
        redis.fail_over(newest).await?;
        redis.bring_back().await?;
        Ok(failed_over(REDIS.to_owned(), loses))
    }

    pub(super) async fn fail_over_in_cluster(&mut self, turn: usize) -> Deeds {
        let Store::Cluster(redis) = self.store else {
            bail!("there is no Redis Cluster")
        };
        let masters = redis.masters().await?;
        let master = masters.choose(&mut self.dice).context("no master")?;
        let dies = !turn.is_multiple_of(WAYS);
        match dies {
            true => redis.lose(master).await?,
            false => redis.fail_over(master).await?,
        }
        Ok(failed_over(master.address().to_string(), dies))
    }
}

fn failed_over(master: String, lost: bool) -> Vec<Deed> {
    let lost = lost.then(|| Deed::new(Deed::LOST_WRITES, REDIS));
    let failed_over = Deed::new("failed over", master);
    [failed_over].into_iter().chain(lost).collect()
}
