//! Making things fail, and letting them recover.

use std::time::Duration;

use anyhow::{Context as _, bail};
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use tokio::time::{Instant, sleep};

use super::deed::{Deed, Injected};
use super::{Fault, Options};
use crate::check::Outage;
use crate::cluster::{Cluster, Member, Role};
use crate::fault_proxy::{self, Direction};
use crate::process::SOON;
use crate::redis::{Data, Redis};

/// How long an orderly end may take.
const ORDERLY_END: Duration = Duration::from_secs(40);

/// Injects the faults of a run.
pub(super) struct Injector<'a> {
    cluster: &'a Cluster,
    options: &'a Options,
    began: Instant,
    dice: StdRng,
    injected: Vec<Injected>,
    /// Whose turn it is to be restarted.
    rolled: usize,
}

impl<'a> Injector<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        options: &'a Options,
        began: Instant,
        dice: StdRng,
    ) -> Self {
        Self {
            cluster,
            options,
            began,
            dice,
            injected: Vec::new(),
            rolled: 0,
        }
    }

    /// Injects until the time is over; one fault at a time, and at least one.
    ///
    /// # Errors
    /// When a member does not end or come back as it should.
    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        let time = self.options.time;
        if self.options.fault == Fault::None {
            sleep(time).await;
            return Ok(());
        }
        loop {
            let peace = self.options.peace.mul_f64(self.dice.random_range(0.5..1.5));
            sleep(peace).await;
            self.inject(self.options.fault).await?;
            // A rollout is over when everybody has had a turn.
            let rolling = self.options.fault == Fault::Rolling
                && !self.rolled.is_multiple_of(self.cluster.members().len());
            if self.began.elapsed() + self.options.peace >= time && !rolling {
                return Ok(());
            }
        }
    }

    pub(super) fn injected(&self) -> &[Injected] {
        &self.injected
    }

    /// When which member was killed.
    pub(super) fn outages(&self) -> Vec<Outage> {
        self.down(|deed| match deed {
            Deed::Killed(member) => Some(member),
            _ => None,
        })
    }

    /// When data was lost.
    pub(super) fn wipes(&self) -> Vec<Outage> {
        self.down(|deed| (*deed == Deed::Wiped).then_some("redis"))
    }

    fn down(&self, member: impl Fn(&Deed) -> Option<&str>) -> Vec<Outage> {
        let outage = |injected: &Injected| {
            Some(Outage {
                member: member(&injected.deed)?.to_owned(),
                from: injected.from,
                until: injected.until,
            })
        };
        self.injected.iter().filter_map(outage).collect()
    }

    async fn inject(&mut self, fault: Fault) -> anyhow::Result<()> {
        let from = self.began.elapsed();
        let cluster = self.cluster;
        let deed = match fault {
            Fault::None => return Ok(()),
            Fault::Edge => self.kill(&cluster.edges()).await?,
            Fault::Session => self.kill(&cluster.sessions()).await?,
            Fault::Worker => self.kill(&cluster.workers()).await?,
            Fault::TwoRoles => return self.kill_two().await,
            // Longer than the lease, most of the time.
            Fault::Pause => {
                let time = self.about(self.options.lease.mul_f64(1.5));
                self.pause(&cluster.sessions(), time).await?
            }
            Fault::ShortPause => {
                let noticed = self.options.silence.mul_f64(1.1);
                let held = self.options.lease.saturating_sub(noticed).mul_f64(0.8);
                let time = noticed + held.mul_f64(self.dice.random());
                self.pause(&cluster.sessions(), time).await?
            }
            Fault::PauseEdge => {
                let time = self.about(self.options.lease);
                self.pause(&cluster.edges(), time).await?
            }
            Fault::PauseWorker => {
                let time = self.about(self.options.lease);
                self.pause(&cluster.workers(), time).await?
            }
            Fault::PauseRedis => self.pause_redis().await?,
            Fault::CutEdgeSession => self.cut(&cluster.sessions(), &cluster.edges()).await?,
            Fault::CutSessionWorker => self.cut(&cluster.workers(), &cluster.sessions()).await?,
            Fault::CutRedis => self.cut_redis().await?,
            Fault::OneWay => self.one_way().await?,
            Fault::Slow => self.slow().await?,
            Fault::RedisRestart => self.restart_redis(Data::Kept).await?,
            Fault::RedisWipe => self.restart_redis(Data::Lost).await?,
            Fault::Rolling => self.roll().await?,
            Fault::Mixed => {
                let one = Fault::MIXED.choose(&mut self.dice).copied();
                // Each of them is a plain one.
                return Box::pin(self.inject(one.unwrap_or(Fault::Session))).await;
            }
        };
        let until = self.began.elapsed();
        self.injected.push(Injected { deed, from, until });
        Ok(())
    }

    async fn kill(&mut self, members: &[&Member]) -> anyhow::Result<Deed> {
        let member = self.one_of(members)?;
        member.kill().await?;
        self.wait_about(Duration::from_secs(1)).await;
        bring_back(member).await?;
        Ok(Deed::Killed(member.name().to_owned()))
    }

    /// Kills one member each of two roles, before anybody can have noticed that the other one is gone.
    async fn kill_two(&mut self) -> anyhow::Result<()> {
        let from = self.began.elapsed();
        let cluster = self.cluster;
        let mut roles = [cluster.edges(), cluster.sessions(), cluster.workers()];
        roles.shuffle(&mut self.dice);
        let [one, other, _] = roles;
        let killed = [self.one_of(&one)?, self.one_of(&other)?];
        for member in killed {
            member.kill().await?;
        }
        self.wait_about(Duration::from_secs(1)).await;
        for member in killed {
            member.start_again().await?;
        }
        for member in killed {
            member.wait_until_ready(SOON).await?;
        }
        let until = self.began.elapsed();
        self.injected.extend(killed.map(|member| Injected {
            deed: Deed::Killed(member.name().to_owned()),
            from,
            until,
        }));
        Ok(())
    }

    async fn pause(&mut self, members: &[&Member], time: Duration) -> anyhow::Result<Deed> {
        let member = self.one_of(members)?;
        member.pause().await?;
        sleep(time).await;
        member.resume().await?;
        member.wait_until_ready(SOON).await?;
        Ok(Deed::Paused(member.name().to_owned()))
    }

    async fn pause_redis(&mut self) -> anyhow::Result<Deed> {
        let redis = self.redis()?;
        redis.pause().await?;
        self.wait_about(self.options.lease).await;
        redis.resume().await?;
        Ok(Deed::Paused("redis".to_owned()))
    }

    /// One member hears another one and is not heard by it, or the other way round.
    async fn one_way(&mut self) -> anyhow::Result<Deed> {
        let (one, other) = self.two_that_talk()?;
        let direction = match self.dice.random_bool(0.5) {
            true => Direction::Up,
            false => Direction::Down,
        };
        (self.cluster).between(one, other, fault_proxy::Fault::OneWayHole(direction));
        self.wait_about(self.options.lease).await;
        self.cluster.heal();
        let (one, other) = (one.name(), other.name());
        let deed = format!("{direction:?} is silent between {one} and {other}");
        Ok(Deed::Cut(deed))
    }

    /// Between two members, or one and Redis, everything is late or little passes.
    async fn slow(&mut self) -> anyhow::Result<Deed> {
        let fault = match self.dice.random_bool(0.5) {
            true => {
                let late = self.dice.random_range(20..300);
                fault_proxy::Fault::Delay(Duration::from_millis(late))
            }
            false => fault_proxy::Fault::Throttle(self.dice.random_range(10_000..100_000)),
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
        self.wait_about(self.options.lease).await;
        self.cluster.heal();
        Ok(Deed::Cut(format!("{fault:?} between {between}")))
    }

    /// Two members that have a connection; the second one uses Redis.
    fn two_that_talk(&mut self) -> anyhow::Result<(&'a Member, &'a Member)> {
        let cluster = self.cluster;
        let (ones, others) = match self.dice.random_range(0..3) {
            0 => (cluster.edges(), cluster.sessions()),
            1 => (cluster.workers(), cluster.sessions()),
            _ => (cluster.workers(), cluster.edges()),
        };
        Ok((self.one_of(&ones)?, self.one_of(&others)?))
    }

    /// Cuts one member off from all others of a kind, or from one of them.
    async fn cut(&mut self, members: &[&Member], others: &[&Member]) -> anyhow::Result<Deed> {
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
        self.wait_about(self.options.lease).await;
        self.cluster.heal();
        let others: Vec<&str> = others.iter().map(|other| other.name()).collect();
        let deed = format!("{word} between {} and {}", member.name(), others.join(", "));
        Ok(Deed::Cut(deed))
    }

    async fn cut_redis(&mut self) -> anyhow::Result<Deed> {
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
        self.wait_about(self.options.lease).await;
        cluster.heal();
        let nodes: Vec<&str> = nodes.iter().map(|node| node.name()).collect();
        Ok(Deed::Cut(format!(
            "{word} between Redis and {}",
            nodes.join(", ")
        )))
    }

    async fn restart_redis(&mut self, data: Data) -> anyhow::Result<Deed> {
        let redis = self.redis()?;
        redis.kill().await?;
        self.wait_about(Duration::from_millis(700)).await;
        redis.start_again(data).await?;
        Ok(match data {
            Data::Kept => Deed::RedisRestarted,
            Data::Lost => Deed::Wiped,
        })
    }

    /// Restarts the next member in order: sessions first, then edges, then workers.
    async fn roll(&mut self) -> anyhow::Result<Deed> {
        let members = self.cluster.members();
        let member = &members[self.rolled % members.len()];
        self.rolled += 1;
        let status = member.terminate(ORDERLY_END).await?;
        if !status.success() {
            bail!(
                "{} ended with {status} when it was asked to end",
                member.name()
            );
        }
        bring_back(member).await?;
        Ok(Deed::Restarted(member.name().to_owned()))
    }

    fn one_of<'m>(&mut self, members: &[&'m Member]) -> anyhow::Result<&'m Member> {
        let one = members.choose(&mut self.dice).copied();
        let one = one.filter(|member| member.role() != Role::Whole);
        one.context("one process has no parts that could fail")
    }

    fn redis(&self) -> anyhow::Result<&'a Redis> {
        self.cluster.redis().context("one process has no Redis")
    }

    fn silence(&mut self) -> (fault_proxy::Fault, &'static str) {
        if self.dice.random_bool(0.5) {
            (fault_proxy::Fault::Cut, "cut")
        } else {
            (fault_proxy::Fault::BlackHole, "silence")
        }
    }

    async fn wait_about(&mut self, time: Duration) {
        sleep(self.about(time)).await;
    }

    fn about(&mut self, time: Duration) -> Duration {
        time.mul_f64(self.dice.random_range(0.5..2.0))
    }
}

async fn bring_back(member: &Member) -> anyhow::Result<()> {
    member.start_again().await?;
    member.wait_until_ready(SOON).await
}
