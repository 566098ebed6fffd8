//! A hostile tenant exhausts one resource after the other, and a good tenant must not notice.

mod bound;
mod good;
mod hostile;
mod item;
mod row;
mod setup;
mod tally;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum as _};
use http::HeaderValue;
use tokio::time::{interval, sleep};

use self::bound::{Bound, Effective};
use self::good::{Good, Worked};
use self::hostile::{Deed, Hostile};
use self::item::{Gauge, Item};
use self::row::{Memory, Row, SLOWER, Table};
use self::setup::Tokens;
use crate::cli::duration;
use crate::findings::Findings;
use crate::outcome::Outcome;
use crate::process;
use crate::scenario::{Finished, Scenario, Subject};
use crate::servers::cluster::member::Role;
use crate::servers::cluster::{Cluster, Shape};
use crate::servers::spawned::Environment;
use crate::target::Target;

const EDGES: usize = 2;
const WORKERS: usize = 2;
const WARM_UP: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The arguments of `loadtest tenants`.
#[derive(Debug, Args)]
pub(crate) struct Tenants {
    #[command(flatten)]
    subject: Subject,
    /// Resources that the hostile tenant exhausts, one after the other, separated by commas [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Item>,
    /// Duration of each attack, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Time to measure the baseline before each attack, in seconds.
    #[arg(long, default_value_t = 30)]
    baseline_seconds: u64,
    /// Number of connections of the hostile tenant.
    #[arg(long, default_value_t = 100)]
    connections: usize,
    /// Pause of each connection between two attempts, and between two echo calls in the baseline.
    #[arg(long, default_value = "500ms", value_parser = duration)]
    pace: Duration,
    /// Calls of the good tenant a second.
    #[arg(long, default_value_t = 40.0)]
    rate: f64,
    /// Number of session nodes.
    #[arg(long, default_value_t = 1)]
    session_nodes: usize,
    /// Setting of all processes that overrides this scenario's, such as pools.demo.concurrency_per_principal=0; may be
    /// repeated.
    #[arg(long = "set", value_name = "SETTING=VALUE")]
    settings: Vec<String>,
    /// Directory for the logs of the processes [default: none, logs are discarded].
    #[arg(long)]
    logs: Option<PathBuf>,
}

impl Scenario for Tenants {
    fn json(&self) -> Option<&Path> {
        self.subject.json()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        ensure!(self.rate > 0.0, "some calls must come");
        ensure!(self.connections > 0, "the hostile tenant needs connections");
        let shoal = self.subject.shoal()?;
        let tokens = Tokens::draw();
        let environment = tokens.environment(&self.settings)?;
        let effective = Effective::of(&shoal, &environment)?;
        let bounds = effective.bounds(EDGES)?;
        for (_, bound) in &bounds {
            crate::progress(&bound.to_string());
        }
        let items = match self.only.is_empty() {
            true => Item::value_variants(),
            false => &self.only,
        };
        let Self {
            connections, rate, ..
        } = self;
        let title = format!(
            "{connections} connections of a hostile tenant beside {rate} calls/s of a good one, p99 at most {SLOWER} × the baseline"
        );
        let mut outcome = Outcome::begin("tenants", title);
        outcome.parameters(&[
            ("seconds", &self.seconds),
            ("baseline-seconds", &self.baseline_seconds),
            ("connections", connections),
            ("pace", &format!("{:?}", self.pace)),
            ("rate", rate),
            ("session-nodes", &self.session_nodes),
            ("set", &self.settings.join(" ")),
        ]);
        let (findings, mut rows) = (Findings::default(), Vec::new());
        for &item in items {
            let scene = Scene::start(self, &shoal, &tokens, &environment).await?;
            let row = scene.measure(self, item, &effective, &bounds).await;
            let row = row.with_context(|| item.name())?;
            let Row {
                item,
                held,
                refused,
                failed,
                calls,
                ..
            } = &row;
            let ratio = row.ratio();
            crate::progress(&format!(
                "{item}: {held} held, refused {refused}, p99 {ratio:.2} ×, {failed} of {calls} failed"
            ));
            for (what, example) in row.faults() {
                findings.add(what, example);
            }
            outcome.lower(format!("{item}: p99, × baseline"), ratio, "");
            outcome.plain(format!("{item}: held"), *held as f64, "");
            for memory in &row.memory {
                let name = format!("{item}: RSS of {}", memory.process);
                outcome.lower(name, memory.most_kib as f64, "KiB");
            }
            rows.push(row);
        }
        outcome.seconds = (self.seconds * rows.len() as u64) as f64;
        outcome.violations = findings.violations();
        Ok(Table { rows, outcome })
    }
}

struct Scene {
    cluster: Arc<Cluster>,
    good: Good,
    hostile: Vec<Target>,
}

impl Scene {
    async fn start(
        options: &Tenants,
        shoal: &Path,
        tokens: &Tokens,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let shape = Shape {
            edges: EDGES,
            sessions: options.session_nodes,
            workers: WORKERS,
            logs: options.logs.clone(),
            ..Shape::smallest(environment)
        };
        let cluster = Cluster::start_as(shoal, None, &shape)?;
        let plain = cluster.targets().await?;
        let of = |authorization: HeaderValue| {
            let shown = |target: &Target| Target {
                authorization: Some(authorization.clone()),
                ..target.clone()
            };
            plain.iter().map(shown).collect::<Vec<_>>()
        };
        let good = Good::new(&of(tokens.good()), options.rate);
        let hostile = of(tokens.hostile());
        Ok(Self {
            cluster: Arc::new(cluster),
            good,
            hostile,
        })
    }

    async fn measure(
        &self,
        options: &Tenants,
        item: Item,
        effective: &Effective,
        bounds: &[(Role, Bound)],
    ) -> anyhow::Result<Row> {
        let warm = self.good.work(WARM_UP).await;
        ensure!(
            warm.failed == 0,
            "alone, the good tenant fails: {:?}",
            warm.first_failure
        );
        let mut memory = Vec::new();
        for member in &self.cluster.members {
            let bound = bounds.iter().find(|(role, _)| *role == member.role);
            let idle_kib = member.rss_kib()?;
            memory.push(Memory {
                process: member.name.clone(),
                most_kib: 0,
                bound_kib: idle_kib + bound.map_or(0, |(_, bound)| bound.bytes() >> 10),
            });
        }
        let seconds = Duration::from_secs(options.baseline_seconds);
        let (baseline, _, calm) = self
            .phase(options, Deed::Harmless, Gauge::Own, seconds)
            .await?;
        ensure!(
            baseline.failed == 0,
            "the baseline has failures: {:?}",
            baseline.first_failure
        );
        let seconds = Duration::from_secs(options.seconds);
        let (worked, hostile, busy) = self
            .phase(options, Deed::Hold(item), item.gauge(), seconds)
            .await?;
        for (memory, member) in memory.iter_mut().zip(&self.cluster.members) {
            memory.most_kib = process::peak_rss_kib(member.pid())?;
        }
        let mut limit = self.cluster.of(item.of()).count() as u64;
        for setting in item.limits() {
            limit *= effective.number(setting)?;
        }
        Ok(Row {
            item: item.name(),
            held: hostile.tally.most(),
            setting: item.limits().join(" × "),
            limit,
            refused: hostile.tally.refusals(),
            baseline: baseline.p99,
            beside: worked.p99,
            slowest: worked.slowest.iter().map(ToString::to_string).collect(),
            calls: worked.calls,
            failed: worked.failed,
            first_failure: worked.first_failure,
            cpu: [calm, busy],
            memory,
        })
    }

    /// Also returns the servers' CPU seconds per second.
    async fn phase(
        &self,
        options: &Tenants,
        deed: Deed,
        gauge: Gauge,
        time: Duration,
    ) -> anyhow::Result<(Worked, Hostile, f64)> {
        let hostile = Hostile::begin(&self.hostile, options.connections, options.pace, deed)?;
        // After this pause, the hostile connections have started, unless large answers spread them
        // over more time.
        sleep(options.pace).await;
        let pids = self.cluster.pids();
        let before = process::measure(&pids)?;
        let worked = tokio::select! {
            worked = self.good.work(time) => worked,
            () = self.watch(gauge, &hostile) => unreachable!("it watches until it is dropped"),
        };
        let cpu = process::measure(&pids)?.cpu.saturating_sub(before.cpu);
        Ok((worked, hostile, cpu.as_secs_f64() / time.as_secs_f64()))
    }

    async fn watch(&self, gauge: Gauge, hostile: &Hostile) {
        if matches!(gauge, Gauge::Own) {
            return std::future::pending().await;
        }
        let mut looks = interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let cluster = Arc::clone(&self.cluster);
            let asked = tokio::task::spawn_blocking(move || match gauge {
                Gauge::Own => Ok(0.0),
                Gauge::Metric(role, name) => {
                    let each = cluster.of(role).map(|member| member.metric(name, &[]));
                    each.sum::<anyhow::Result<f64>>()
                }
                Gauge::Queued => queued(&cluster),
            });
            if let Ok(Ok(held)) = asked.await {
                hostile.tally.measured(held as u64);
            }
        }
    }
}

fn queued(cluster: &Cluster) -> anyhow::Result<f64> {
    let edge = cluster.of(Role::Edge).next().context("no edge")?;
    let status = edge.status()?;
    let pools = status["pools"].as_array().into_iter().flatten();
    let workers = pools.flat_map(|pool| pool["workers"].as_array().into_iter().flatten());
    Ok(workers.filter_map(|worker| worker["queued"].as_f64()).sum())
}
