use std::time::Duration;

use rand::Rng as _;
use tokio::time::sleep;

use super::{Deed, Injector};
use crate::cluster::Member;
use crate::fault_proxy::{Direction, Fault};
use crate::process::SOON;

/// How long messages to workers are held before the node is paused, and how long they travel before
/// the node continues.
const HELD_UP: Duration = Duration::from_millis(300);

impl Injector<'_> {
    pub(super) async fn pause_beyond_lease(
        &mut self,
        members: &[&Member],
    ) -> anyhow::Result<Vec<Deed>> {
        let time = self.about(self.options.lease.mul_f64(1.5));
        self.pause_for(members, time).await
    }

    /// The node's last messages to workers arrive when other nodes may own its sessions.
    pub(super) async fn pause_with_late_starts(&mut self) -> anyhow::Result<Vec<Deed>> {
        let cluster = self.cluster;
        let node = self.one_of(&cluster.sessions())?;
        for worker in cluster.workers() {
            cluster.between(worker, node, Fault::OneWayHole(Direction::Down));
        }
        sleep(HELD_UP).await;
        node.pause().await?;
        sleep(self.options.lease.mul_f64(self.dice.random_range(1.1..1.5))).await;
        cluster.heal();
        sleep(HELD_UP).await;
        node.resume().await?;
        node.wait_until_ready(SOON).await?;
        let name = node.name().to_owned();
        Ok(vec![Deed::Paused(name.clone()), Deed::SentLate(name)])
    }

    pub(super) async fn pause_within_lease(
        &mut self,
        members: &[&Member],
    ) -> anyhow::Result<Vec<Deed>> {
        let noticed = self.options.silence.mul_f64(1.1);
        let held = self.options.lease.saturating_sub(noticed).mul_f64(0.8);
        let time = noticed + held.mul_f64(self.dice.random());
        self.pause_for(members, time).await
    }

    pub(super) async fn pause(&mut self, members: &[&Member]) -> anyhow::Result<Vec<Deed>> {
        let time = self.about(self.options.lease);
        self.pause_for(members, time).await
    }

    pub(super) async fn pause_redis(&mut self) -> anyhow::Result<Vec<Deed>> {
        let redis = self.redis()?;
        redis.pause().await?;
        self.wait_about(self.options.lease).await;
        redis.resume().await?;
        Ok(vec![Deed::Paused("redis".to_owned())])
    }

    async fn pause_for(
        &mut self,
        members: &[&Member],
        time: Duration,
    ) -> anyhow::Result<Vec<Deed>> {
        let member = self.one_of(members)?;
        member.pause().await?;
        sleep(time).await;
        member.resume().await?;
        member.wait_until_ready(SOON).await?;
        Ok(vec![Deed::Paused(member.name().to_owned())])
    }
}
