mod clocks;
mod descriptors;
mod draining;
mod failover;
mod full;
mod kill;
mod network;
mod pause;
mod redis;
mod refuse;
pub(super) mod returning;
mod roll;
mod starting;
mod stderr;
pub(super) mod without_ids;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context as _;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use tokio::time::{Instant, sleep};

use super::deed::{Deed, Injected};
use super::store::Store;
use super::{Fault, Options};
use crate::check::Outage;
use crate::cluster::{Cluster, Member, Role};
use crate::history::History;
use crate::redis::Redis;

/// How long a process may take to end when it is asked to.
const ORDERLY_END: Duration = Duration::from_secs(40);

const ROLES: [Role; 3] = [Role::Edge, Role::Session, Role::Worker];

pub(super) struct Injector<'a> {
    cluster: &'a Cluster,
    store: &'a Store,
    options: &'a Options,
    began: Instant,
    dice: StdRng,
    injected: Vec<Injected>,
    histories: Vec<History>,
    turns: HashMap<Fault, usize>,
}

impl<'a> Injector<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        store: &'a Store,
        options: &'a Options,
        began: Instant,
        dice: StdRng,
    ) -> Self {
        Self {
            cluster,
            store,
            options,
            began,
            dice,
            injected: Vec::new(),
            histories: Vec::new(),
            turns: HashMap::new(),
        }
    }

    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        let time = self.options.time;
        if self.options.fault == Fault::None {
            sleep(time).await;
            return Ok(());
        }
        loop {
            sleep(self.peace()).await;
            self.inject(self.options.fault).await?;
            let everybody_had_a_turn = self.injected.len().is_multiple_of(self.round());
            if self.began.elapsed() + self.options.peace >= time && everybody_had_a_turn {
                return Ok(());
            }
        }
    }

    fn peace(&mut self) -> Duration {
        let peace = self.options.peace.mul_f64(self.dice.random_range(0.5..1.5));
        match (self.options.fault, self.injected.last()) {
            (Fault::Churn, Some(last)) => {
                (last.from + kill::EVERY).saturating_sub(self.began.elapsed())
            }
            _ => peace,
        }
    }

    pub(super) fn injected(&self) -> &[Injected] {
        &self.injected
    }

    pub(super) fn histories(&self) -> &[History] {
        &self.histories
    }

    pub(super) fn outages(&self) -> Vec<Outage> {
        self.down(|deed| match deed {
            Deed::Killed(member) => Some(member),
            _ => None,
        })
    }

    pub(super) fn wipes(&self) -> Vec<Outage> {
        self.down(|deed| (*deed == Deed::Wiped).then_some("redis"))
    }

    pub(super) fn lost_writes(&self) -> Vec<Outage> {
        self.down(|deed| (*deed == Deed::LostWrites).then_some("redis"))
    }

    fn down(&self, member: impl Fn(&Deed) -> Option<&str>) -> Vec<Outage> {
        let deeds = (self.injected.iter())
            .flat_map(|injected| injected.deeds.iter().map(move |deed| (injected, deed)));
        let outage = |(injected, deed): (&Injected, &Deed)| {
            Some(Outage {
                member: member(deed)?.to_owned(),
                from: injected.from,
                until: injected.until,
            })
        };
        deeds.filter_map(outage).collect()
    }

    async fn inject(&mut self, fault: Fault) -> anyhow::Result<()> {
        let from = self.began.elapsed();
        let turn = *self.turns.entry(fault).or_default();
        let cluster = self.cluster;
        let (edges, sessions, workers) = (cluster.edges(), cluster.sessions(), cluster.workers());
        let deeds = match fault {
            Fault::None => return Ok(()),
            Fault::Edge => self.kill(&edges).await?,
            Fault::Session => self.kill(&sessions).await?,
            Fault::Worker => self.kill(&workers).await?,
            Fault::TwoRoles => self.kill_two_roles().await?,
            Fault::Churn => self.kill_next(turn).await?,
            Fault::NoSessionNodes => self.kill_all_session_nodes().await?,
            Fault::Pause => self.pause_beyond_lease(&sessions).await?,
            Fault::LateStarts => self.pause_with_late_starts().await?,
            Fault::ShortPause => self.pause_within_lease(&sessions).await?,
            Fault::PauseEdge => self.pause(&edges).await?,
            Fault::PauseWorker => self.pause(&workers).await?,
            Fault::PauseRedis => self.pause_redis().await?,
            Fault::CutEdgeSession => self.cut(&sessions, &edges).await?,
            Fault::CutSessionWorker => self.cut(&workers, &sessions).await?,
            Fault::Resets => self.reset_often().await?,
            Fault::CutRedis => self.cut_redis().await?,
            Fault::OneWay => self.one_way().await?,
            Fault::Slow => self.slow().await?,
            Fault::Clocks => self.change_clock(turn).await?,
            Fault::Descriptors => self.use_up_descriptors(turn).await?,
            Fault::Stderr => self.stop_reading(turn).await?,
            Fault::RefusingWorker => self.take_room_away().await?,
            Fault::RedisRestart => self.restart_redis().await?,
            Fault::RedisWipe => self.wipe_redis().await?,
            Fault::FullRedis => self.fill_memory().await?,
            Fault::FullDisk => self.fill_disk().await?,
            Fault::Sentinel => self.fail_over_by_sentinel(turn).await?,
            Fault::RedisCluster => self.fail_over_in_cluster(turn).await?,
            Fault::StartingEdges => self.listen_at_a_starting_edge(turn).await?,
            Fault::DrainingEdges => self.call_a_draining_edge(turn).await?,
            Fault::Returning => self.come_back_at_once().await?,
            Fault::WithoutIds => self.come_back_without_ids().await?,
            Fault::Rolling => self.roll(turn).await?,
            Fault::Mixed => {
                let one = Fault::mixed().choose(&mut self.dice).copied();
                // The recursion ends here, because `Fault::mixed` does not contain `Fault::Mixed`.
                return Box::pin(self.inject(one.unwrap_or(Fault::Session))).await;
            }
        };
        self.turns.insert(fault, turn + 1);
        let until = self.began.elapsed();
        self.injected.push(Injected { deeds, from, until });
        Ok(())
    }

    fn round(&self) -> usize {
        match self.options.fault {
            Fault::Rolling => self.cluster.members().len(),
            Fault::Churn | Fault::Clocks | Fault::Descriptors | Fault::Stderr => ROLES.len(),
            Fault::Sentinel | Fault::RedisCluster => failover::WAYS,
            _ => 1,
        }
    }

    fn one_in_turn(&mut self, turn: usize) -> anyhow::Result<&'a Member> {
        let cluster = self.cluster;
        let members = match ROLES[turn % ROLES.len()] {
            Role::Edge | Role::Combined | Role::Whole => cluster.edges(),
            Role::Session => cluster.sessions(),
            Role::Worker => cluster.workers(),
        };
        self.one_of(&members)
    }

    fn one_of<'m>(&mut self, members: &[&'m Member]) -> anyhow::Result<&'m Member> {
        let one = members.choose(&mut self.dice).copied();
        let one = one.filter(|member| member.role() != Role::Whole);
        one.context("one process has no parts that could fail")
    }

    fn redis(&self) -> anyhow::Result<&'a Redis> {
        let redis = self.cluster.redis();
        redis.context("the cluster has no Redis of its own")
    }

    async fn wait_about(&mut self, time: Duration) {
        sleep(self.about(time)).await;
    }

    fn about(&mut self, time: Duration) -> Duration {
        time.mul_f64(self.dice.random_range(0.5..2.0))
    }
}

fn killed(member: &Member) -> Deed {
    Deed::Killed(member.name().to_owned())
}
