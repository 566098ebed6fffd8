use std::time::Duration;

use rand::Rng as _;
use tokio::time::Instant;

use super::{Deed, Deeds, Injector};
use crate::cluster::Member;
use crate::fault_proxy::{Direction, Fault};

const BROKEN_FOR: Duration = Duration::from_millis(40);
const WHOLE_FOR: Duration = Duration::from_millis(160);

impl<'a> Injector<'a> {
    pub(super) async fn cut(&mut self, members: &[&Member], others: &[&Member]) -> Deeds {
        let member = self.one_of(members)?;
        let others = match self.coin() {
            true => others.to_vec(),
            false => vec![self.one_of(others)?],
        };
        let fault = self.silence();
        for other in &others {
            self.cluster.between(member, other, fault);
        }
        let between = format!("{fault:?} between {} and {}", member.name(), names(&others));
        self.until_healed(between).await
    }

    pub(super) async fn cut_redis(&mut self) -> Deeds {
        let cluster = self.cluster;
        let mut nodes = [cluster.edges(), cluster.sessions()].concat();
        if self.dice.random_bool(0.75) {
            nodes = vec![self.one_of(&nodes)?];
        }
        let fault = self.silence();
        for node in &nodes {
            cluster.to_redis(node, fault);
        }
        let between = format!("{fault:?} between Redis and {}", names(&nodes));
        self.until_healed(between).await
    }

    pub(super) async fn reset_often(&mut self) -> Deeds {
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
        Ok(vec![Deed::new("reset", format!("{resets} times"))])
    }

    pub(super) async fn one_way(&mut self) -> Deeds {
        let fault = Fault::OneWayHole(match self.coin() {
            true => Direction::Up,
            false => Direction::Down,
        });
        let (one, other) = self.two_that_talk()?;
        self.cluster.between(one, other, fault);
        let between = format!("{fault:?} between {}", names(&[one, other]));
        self.until_healed(between).await
    }

    pub(super) async fn slow(&mut self) -> Deeds {
        let fault = match self.coin() {
            true => Fault::Delay(Duration::from_millis(self.dice.random_range(20..300))),
            false => Fault::Throttle(self.dice.random_range(10_000..100_000)),
        };
        let (one, other) = self.two_that_talk()?;
        let between = match self.coin() {
            true => {
                self.cluster.between(one, other, fault);
                names(&[one, other])
            }
            false => {
                self.cluster.to_redis(other, fault);
                format!("Redis, {}", other.name())
            }
        };
        self.until_healed(format!("{fault:?} between {between}"))
            .await
    }

    async fn until_healed(&mut self, between: String) -> Deeds {
        self.wait_about(self.options.lease).await;
        self.cluster.heal();
        Ok(vec![Deed::new("disturbed", between)])
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

    fn silence(&mut self) -> Fault {
        match self.coin() {
            true => Fault::Cut,
            false => Fault::BlackHole,
        }
    }
}

fn names(members: &[&Member]) -> String {
    let names: Vec<&str> = members.iter().map(|member| member.name()).collect();
    names.join(", ")
}
