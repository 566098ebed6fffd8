use std::time::Duration;

use rand::Rng as _;

use tokio::time::Instant;

use super::{Deed, Injector};
use crate::cluster::Member;
use crate::fault_proxy::{Direction, Fault};

const BROKEN_FOR: Duration = Duration::from_millis(40);
const WHOLE_FOR: Duration = Duration::from_millis(160);

impl<'a> Injector<'a> {
    pub(super) async fn cut(
        &mut self,
        members: &[&Member],
        others: &[&Member],
    ) -> anyhow::Result<Vec<Deed>> {
        let member = self.one_of(members)?;
        let others = if self.dice.random_bool(0.5) {
            others.to_vec()
        } else {
            vec![self.one_of(others)?]
        };
        let (fault, word) = self.silence();
        for other in &others {
            self.cluster.between(member, other, fault);
        }
        let deed = format!("{word} between {} and {}", member.name(), names(&others));
        self.until_healed(deed).await
    }

    pub(super) async fn reset_often(&mut self) -> anyhow::Result<Vec<Deed>> {
        let until = Instant::now() + self.about(self.options.lease);
        let mut resets = 0;
        while Instant::now() < until {
            for _ in 0..self.dice.random_range(1..=2) {
                let (one, other) = self.two_that_talk()?;
                self.cluster.between(one, other, Fault::Cut);
            }
            self.wait_about(BROKEN_FOR).await;
            self.cluster.heal();
            resets += 1;
            self.wait_about(WHOLE_FOR).await;
        }
        Ok(vec![Deed::Reset(resets)])
    }

    pub(super) async fn cut_redis(&mut self) -> anyhow::Result<Vec<Deed>> {
        let cluster = self.cluster;
        let nodes = [cluster.edges(), cluster.sessions()].concat();
        let nodes = if self.dice.random_bool(0.25) {
            nodes
        } else {
            vec![self.one_of(&nodes)?]
        };
        let (fault, word) = self.silence();
        for node in &nodes {
            cluster.to_redis(node, fault);
        }
        let deed = format!("{word} between Redis and {}", names(&nodes));
        self.until_healed(deed).await
    }

    pub(super) async fn one_way(&mut self) -> anyhow::Result<Vec<Deed>> {
        let (one, other) = self.two_that_talk()?;
        let direction = match self.dice.random_bool(0.5) {
            true => Direction::Up,
            false => Direction::Down,
        };
        (self.cluster).between(one, other, Fault::OneWayHole(direction));
        let (one, other) = (one.name(), other.name());
        let deed = format!("{direction:?} is silent between {one} and {other}");
        self.until_healed(deed).await
    }

    pub(super) async fn slow(&mut self) -> anyhow::Result<Vec<Deed>> {
        let fault = match self.dice.random_bool(0.5) {
            true => Fault::Delay(Duration::from_millis(self.dice.random_range(20..300))),
            false => Fault::Throttle(self.dice.random_range(10_000..100_000)),
        };
        let (one, other) = self.two_that_talk()?;
        let between = match self.dice.random_bool(0.5) {
            true => {
                self.cluster.between(one, other, fault);
                format!("{} and {}", one.name(), other.name())
            }
            false => {
                self.cluster.to_redis(other, fault);
                format!("{} and Redis", other.name())
            }
        };
        let deed = format!("{fault:?} between {between}");
        self.until_healed(deed).await
    }

    async fn until_healed(&mut self, deed: String) -> anyhow::Result<Vec<Deed>> {
        self.wait_about(self.options.lease).await;
        self.cluster.heal();
        Ok(vec![Deed::Cut(deed)])
    }

    /// The second member uses Redis.
    fn two_that_talk(&mut self) -> anyhow::Result<(&'a Member, &'a Member)> {
        let cluster = self.cluster;
        let (ones, others) = match self.dice.random_range(0..3) {
            0 => (cluster.edges(), cluster.sessions()),
            1 => (cluster.workers(), cluster.sessions()),
            _ => (cluster.workers(), cluster.edges()),
        };
        Ok((self.one_of(&ones)?, self.one_of(&others)?))
    }

    fn silence(&mut self) -> (Fault, &'static str) {
        if self.dice.random_bool(0.5) {
            (Fault::Cut, "cut")
        } else {
            (Fault::BlackHole, "silence")
        }
    }
}

fn names(members: &[&Member]) -> String {
    let names: Vec<&str> = members.iter().map(|member| member.name()).collect();
    names.join(", ")
}
