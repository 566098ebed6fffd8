use std::time::Duration;

use anyhow::{Context as _, bail};
use rand::seq::IndexedRandom as _;

use super::{Deed, Injector};
use crate::chaos::store::Store;
use crate::redis_sentinel::Newest;

pub(super) const WAYS: usize = 2;

const LOST: Duration = Duration::from_secs(1);

impl Injector<'_> {
    /// Every other time, the newest writes are lost.
    pub(super) async fn fail_over_by_sentinel(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let Store::Sentinel(redis) = self.store else {
            bail!("there is no Sentinel")
        };
        let loses = turn.is_multiple_of(WAYS);
        if loses {
            redis.cut_replica_off().await?;
            self.wait_about(LOST).await;
        }
        let newest = if loses { Newest::Lost } else { Newest::Kept };
        redis.fail_over(newest).await?;
        redis.bring_back().await?;
        let failed_over = Deed::FailedOver(format!("{newest:?}"));
        Ok(deeds(failed_over, loses))
    }

    pub(super) async fn fail_over_in_cluster(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let Store::Cluster(redis) = self.store else {
            bail!("there is no Redis Cluster")
        };
        let masters = redis.masters().await?;
        let master = masters.choose(&mut self.dice).context("no master")?;
        let dies = !turn.is_multiple_of(WAYS);
        if dies {
            redis.lose(master).await?;
        } else {
            redis.fail_over(master).await?;
        }
        let failed_over = Deed::FailedOver(format!("of {}", master.address()));
        Ok(deeds(failed_over, dies))
    }
}

fn deeds(failed_over: Deed, lost: bool) -> Vec<Deed> {
    let lost = lost.then_some(Deed::LostWrites);
    [failed_over].into_iter().chain(lost).collect()
}
