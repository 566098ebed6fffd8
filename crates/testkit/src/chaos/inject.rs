mod draining;
mod members;
mod network;
mod redis;
pub(super) mod returning;
mod starting;
pub(super) mod without_ids;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use tokio::time::{Instant, sleep};

use super::deed::{Deed, Injected};
use super::store::Store;
use super::{Fault, Options};
use crate::check::Outage;
use crate::clock::SKEWS;
use crate::cluster::{Cluster, Member, Role};
use crate::history::History;
use crate::process::SOON;

/// How long a process may take to end when it is asked to.
const ORDERLY_END: Duration = Duration::from_secs(40);
/// How long a killed process stays away.
const AWAY: Duration = Duration::from_secs(1);
const SHORTLY_AWAY: Duration = Duration::from_millis(100);
const CHURN: Duration = Duration::from_secs(1);
/// Number of roles whose members are taken in turn.
const ROLES: usize = 3;

type Deeds = anyhow::Result<Vec<Deed>>;

pub(super) struct Injector<'a> {
    pub(super) injected: Vec<Injected>,
    pub(super) histories: Vec<History>,
    cluster: &'a Cluster,
    store: &'a Store,
    options: &'a Options,
    began: Instant,
    dice: StdRng,
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
            injected: Vec::new(),
            histories: Vec::new(),
            cluster,
            store,
            options,
            began,
            dice,
            turns: HashMap::new(),
        }
    }

    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        let Options {
            fault, time, peace, ..
        } = *self.options;
        if fault == Fault::None {
            sleep(time).await;
            return Ok(());
        }
        loop {
            let pause = match self.injected.last() {
                Some(last) if fault == Fault::Churn => {
                    (last.from + CHURN).saturating_sub(self.began.elapsed())
                }
                _ => peace.mul_f64(self.dice.random_range(0.5..1.5)),
            };
            sleep(pause).await;
            self.inject(fault).await?;
            let everybody_had_a_turn = self.injected.len().is_multiple_of(self.round());
            if self.began.elapsed() + peace >= time && everybody_had_a_turn {
                return Ok(());
            }
        }
    }

    /// Returns when a member or Redis suffered this fault.
    pub(super) fn outages(&self, what: &str) -> Vec<Outage> {
        let outages = self.injected.iter().flat_map(|injected| {
            let deeds = injected.deeds.iter().filter(|deed| deed.what == what);
            deeds.map(|deed| Outage {
                member: deed.victim.clone(),
                from: injected.from,
                until: injected.until,
            })
        });
        outages.collect()
    }

    async fn inject(&mut self, fault: Fault) -> anyhow::Result<()> {
        let from = self.began.elapsed();
        let turn = *self.turns.entry(fault).or_default();
        let (cluster, lease) = (self.cluster, self.options.lease);
        let (edges, sessions, workers) = (cluster.edges(), cluster.sessions(), cluster.workers());
        let in_turn = [&edges, &sessions, &workers][turn % ROLES];
        let deeds = match fault {
            Fault::None => return Ok(()),
            Fault::Edge => self.kill_one(&edges, AWAY).await?,
            Fault::Session => self.kill_one(&sessions, AWAY).await?,
            Fault::Worker => self.kill_one(&workers, AWAY).await?,
            Fault::TwoRoles => self.kill_two_roles().await?,
            Fault::Churn => self.kill_one(in_turn, SHORTLY_AWAY).await?,
            Fault::NoSessionNodes => self.kill_all_session_nodes().await?,
            Fault::Pause => self.pause(&sessions, lease.mul_f64(1.5)).await?,
            Fault::LateStarts => self.pause_with_late_starts().await?,
            Fault::ShortPause => self.pause_within_lease(&sessions).await?,
            Fault::PauseEdge => self.pause(&edges, lease).await?,
            Fault::PauseWorker => self.pause(&workers, lease).await?,
            Fault::CutEdgeSession => self.cut(&sessions, &edges).await?,
            Fault::CutSessionWorker => self.cut(&workers, &sessions).await?,
            Fault::Resets => self.reset_often().await?,
            Fault::CutRedis => self.cut_redis().await?,
            Fault::OneWay => self.one_way().await?,
            Fault::Slow => self.slow().await?,
            Fault::Clocks => {
                self.change_clock(in_turn, SKEWS[turn % SKEWS.len()])
                    .await?
            }
            Fault::Descriptors => self.use_up_descriptors(in_turn).await?,
            Fault::Stderr => self.stop_reading(in_turn).await?,
            Fault::RefusingWorker => self.take_room_away().await?,
            Fault::PauseRedis
            | Fault::RedisRestart
            | Fault::RedisWipe
            | Fault::FullRedis
            | Fault::FullDisk => self.break_redis(fault).await?,
            Fault::Sentinel => self.fail_over_by_sentinel(turn).await?,
            Fault::RedisCluster => self.fail_over_in_cluster(turn).await?,
            Fault::StartingEdges => self.listen_at_a_starting_edge(turn).await?,
            Fault::DrainingEdges => self.call_a_draining_edge(turn).await?,
            Fault::Returning => self.come_back_at_once().await?,
            Fault::WithoutIds => self.come_back_without_ids().await?,
            Fault::Rolling => {
                let members = cluster.members();
                self.restart(&members[turn % members.len()]).await?
            }
            Fault::Mixed => {
                let one = Fault::mixed().choose(&mut self.dice).copied();
                // The recursion ends here, because `Fault::mixed` does not contain `Fault::Mixed`.
                return Box::pin(self.inject(one.unwrap_or(Fault::Session))).await;
            }
        };
        let members = cluster.members().iter();
        try_join_all(members.map(|member| member.wait_until_ready(SOON))).await?;
        self.turns.insert(fault, turn + 1);
        let until = self.began.elapsed();
        self.injected.push(Injected { deeds, from, until });
        Ok(())
    }

    /// Returns the number of faults that belong together.
    fn round(&self) -> usize {
        match self.options.fault {
            Fault::Rolling => self.cluster.members().len(),
            Fault::Churn | Fault::Clocks | Fault::Descriptors | Fault::Stderr => ROLES,
            Fault::Sentinel | Fault::RedisCluster => redis::WAYS,
            _ => 1,
        }
    }

    fn one_of<'m>(&mut self, members: &[&'m Member]) -> anyhow::Result<&'m Member> {
        let one = members.choose(&mut self.dice).copied();
        let one = one.filter(|member| member.role() != Role::Whole);
        one.context("one process has no parts that could fail")
    }

    fn coin(&mut self) -> bool {
        self.dice.random_bool(0.5)
    }

    async fn wait_about(&mut self, time: Duration) {
        sleep(self.about(time)).await;
    }

    fn about(&mut self, time: Duration) -> Duration {
        time.mul_f64(self.dice.random_range(0.5..2.0))
    }
}
