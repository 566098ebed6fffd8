mod churn;
mod slope;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use shoal_testkit::cluster::{Cluster, Role};
use tokio::time::{Instant, interval_at, sleep};

use self::churn::Churn;
use self::slope::Slope;
use crate::cli::duration;
use crate::findings::Findings;
use crate::memory::{Memory, RESIDENT, Reading};
use crate::outcome::{Outcome, Series};
use crate::process;
use crate::scenario::Subject;
use crate::servers;

/// Counts the keys in Redis except those of the processes themselves.
const KEYS: &str = "local count = 0 \
                    for _, key in ipairs(redis.call('KEYS', '*')) do \
                    if not string.find(key, '{nodes}', 1, true) then count = count + 1 end end \
                    return count";

const EXPIRY_PATIENCE: Duration = Duration::from_secs(60);

/// The arguments of `loadtest soak`.
#[derive(Debug, Args)]
pub(crate) struct Soak {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Duration of the run.
    #[arg(long, default_value = "30m", value_parser = duration)]
    duration: Duration,
    /// Sessions to open a second.
    #[arg(long, default_value_t = 100.0)]
    rate: f64,
    /// Number of edges.
    #[arg(long, default_value_t = 2)]
    edges: usize,
    /// Number of session nodes.
    #[arg(long, default_value_t = 2)]
    session_nodes: usize,
    /// Number of workers.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Time after which an abandoned session expires (`session.idle`).
    #[arg(long, default_value = "20s", value_parser = duration)]
    idle: Duration,
    /// Time between two readings of memory.
    #[arg(long, default_value = "5s", value_parser = duration)]
    every: Duration,
    /// Seed of the clients' decisions [default: a random one, which is printed].
    #[arg(long)]
    seed: Option<u64>,
}

impl Soak {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        ensure!(self.rate > 0.0, "the rate must be above 0");
        let seed = self.seed.unwrap_or_else(rand::random);
        let mut outcome = self.begin(seed);
        crate::progress(&format!("seed {seed}"));
        let cluster = self.cluster().await?;

        let churn = Arc::new(Churn::new(servers::targets(&cluster).await?, seed));
        let memory = Memory::of(&cluster);
        let cpu_before = process::measure(&cluster.pids())?.cpu;
        let began = Instant::now();
        let running = Arc::clone(&churn).run(self.rate, self.duration);
        let mut running = tokio::spawn(running);
        let mut readings = interval_at(began + self.every, self.every);
        loop {
            tokio::select! {
                ended = &mut running => break ended?,
                _ = readings.tick() => {
                    let (seconds, held) = (began.elapsed().as_secs_f64(), held(&cluster).await?);
                    let (opened, found) = (count(&churn.counts, churn::OPENED), churn.findings.count());
                    crate::progress(&format!(
                        "{seconds:.0} s: {opened} sessions opened, held {held:?}, {found} findings"
                    ));
                    memory.sample(seconds, &mut outcome).await?;
                    for (name, count) in &held {
                        outcome.point(name, "", (seconds, *count));
                    }
                }
            }
        }
        outcome.seconds = began.elapsed().as_secs_f64();
        let cpu = process::measure(&cluster.pids())?
            .cpu
            .saturating_sub(cpu_before);
        figures(&mut outcome, &churn.counts, cpu);
        judge(&mut outcome);
        self.expire(&mut outcome, &cluster).await?;
        outcome.violations = churn.findings.violations();
        Ok(outcome)
    }
}

impl Soak {
    fn begin(&self, seed: u64) -> Outcome {
        let Self {
            rate,
            edges,
            session_nodes,
            workers,
            ..
        } = self;
        let title = format!(
            "{rate} sessions a second come and go, {edges} edges, {session_nodes} session nodes, {workers} workers, Redis"
        );
        let mut outcome = Outcome::begin("soak", title);
        outcome
            .parameters
            .insert("seed".to_owned(), seed.to_string());
        outcome
    }

    /// Starts a cluster that keeps state only for a short time.
    async fn cluster(&self) -> anyhow::Result<Cluster> {
        let builder = self
            .subject
            .cluster()?
            .edges(self.edges)
            .sessions(self.session_nodes)
            .workers(self.workers)
            .setting("session.passivate_after", "5s")
            .setting("session.sweep_every", "1s")
            .setting("session.idle", &format!("{}ms", self.idle.as_millis()))
            .setting("streams.retention", "10s")
            // Short times, because what workers remember against repeated executions must have its
            // full size before the first third of the run is over.
            .setting("pools.demo.call_memory", "30s")
            .setting("pools.demo.result_retention", "10s");
        builder.start().await
    }

    async fn expire(&self, outcome: &mut Outcome, cluster: &Cluster) -> anyhow::Result<()> {
        let left = Instant::now();
        let patience = self.idle * 2 + EXPIRY_PATIENCE;
        let mut remains = held(cluster).await?;
        while remains.values().any(|count| *count > 0.0) && left.elapsed() < patience {
            sleep(Duration::from_secs(1)).await;
            remains = held(cluster).await?;
            crate::progress(&format!("everybody has left: {remains:?}"));
        }
        let seconds = left.elapsed().as_secs_f64();
        outcome.lower("until everything was gone", seconds, "s");
        for (what, count) in remains {
            let text = format!("{what} {count}, {seconds:.0} s after the last client: 0");
            outcome.verdict(text, count == 0.0);
        }
        Ok(())
    }
}

/// Counts what the cluster holds for clients.
async fn held(cluster: &Cluster) -> anyhow::Result<Reading> {
    let redis = cluster.redis().context("no Redis")?;
    let keys = redis.command(&["EVAL", KEYS, "0"]).await?.parse()?;
    let mut held = Reading::from([("keys in Redis".to_owned(), keys)]);
    let counts = [
        (Role::Session, "sessions on the nodes", "/sessions/live"),
        (Role::Session, "sessions on the nodes", "/sessions/passive"),
        (Role::Session, "open streams", "/sessions/streams"),
        (Role::Session, "running calls", "/sessions/in_flight"),
        (Role::Edge, "open streams", "/edge/streams"),
    ];
    for member in cluster.members() {
        let status = member.admin().status().await?;
        for (_, what, gauge) in counts.iter().filter(|(role, ..)| *role == member.role()) {
            let count = status.pointer(gauge).and_then(serde_json::Value::as_f64);
            let count = count.with_context(|| format!("{} lacks {gauge}", member.name()))?;
            *held.entry((*what).to_owned()).or_default() += count;
        }
    }
    Ok(held)
}

/// Judges the memory of each process.
pub(crate) fn judge(outcome: &mut Outcome) {
    for Series { name, points, .. } in outcome.series.clone() {
        let (Some(process), Some(last)) = (name.strip_suffix(RESIDENT), points.last()) else {
            continue;
        };
        let name = format!("{process}: resident memory at the end");
        outcome.lower(name, last.1, "KiB");
        let name = format!("{process}: slope of memory");
        let asked = "of the last two thirds, indistinguishable from 0 or falling";
        let Some(slope) = Slope::settled(&points) else {
            outcome.verdict(format!("{name} {asked}: too few readings"), None);
            continue;
        };
        let [median, low, high] =
            [slope.median, slope.low, slope.high].map(|slope| slope * 3_600.0);
        let range = format!("(95 %: {low:+.0} to {high:+.0})");
        let what = format!("{name} {median:+.0} KiB/h {range} {asked}");
        outcome.lower(name, median, "KiB/h");
        outcome.verdict(what, !slope.grows());
    }
}

fn count(counts: &Findings, what: &str) -> u64 {
    let counts = counts.violations();
    let found = counts.iter().find(|one| one.what == what);
    found.map_or(0, |one| one.count)
}

fn figures(outcome: &mut Outcome, counts: &Findings, cpu: Duration) {
    for name in churn::COUNTED {
        outcome.plain(name, count(counts, name) as f64, "");
    }
    let cores = cpu.as_secs_f64() / outcome.seconds;
    outcome.lower("cores used by all processes", cores, "");
    let sessions = count(counts, churn::OPENED).max(1) as f64;
    let per_session = cpu.as_secs_f64() * 1e6 / sessions;
    outcome.lower("CPU time a session's life", per_session, "µs");
}
