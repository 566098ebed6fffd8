mod churn;
mod samples;
mod slope;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tokio::time::{Instant, interval_at, sleep};

use crate::cli::duration;
use crate::findings::Findings;
use crate::outcome::Outcome;
use crate::process;
use crate::scenario::{Finished, Scenario, Subject};
use crate::servers::cluster::{Cluster, Shape};
use churn::{Churn, Counts};
use samples::{Held, Samples};

const EXPIRY_PATIENCE: Duration = Duration::from_secs(60);

/// The arguments of `loadtest soak`.
#[derive(Debug, Args)]
pub(crate) struct Soak {
    #[command(flatten)]
    subject: Subject,
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
    /// Directory for the logs of the processes [default: none, logs are discarded].
    #[arg(long)]
    logs: Option<PathBuf>,
}

impl Scenario for Soak {
    fn json(&self) -> Option<&Path> {
        self.subject.json()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        ensure!(self.rate > 0.0, "the rate must be above 0");
        let shoal = self.subject.shoal()?;
        let seed = self.seed.unwrap_or_else(rand::random);
        let mut outcome = self.begin(seed);
        crate::progress(&format!("seed {seed}"));
        let cluster = Cluster::start_as(&shoal, None, &self.shape())?;

        let (counts, findings) = (Arc::<Counts>::default(), Arc::<Findings>::default());
        let churn = Churn {
            targets: cluster.targets().await?.into(),
            rate: self.rate,
            seed,
            counts: Arc::clone(&counts),
            findings: Arc::clone(&findings),
        };
        let cpu_before = process::measure(&cluster.pids())?.cpu;
        let began = Instant::now();
        let mut running = tokio::spawn(churn.run(began + self.duration));
        let mut samples = Samples::default();
        let mut readings = interval_at(began + self.every, self.every);
        loop {
            tokio::select! {
                ended = &mut running => break ended?,
                _ = readings.tick() => {
                    // Reading blocks this thread's clients for some milliseconds.
                    let held = samples.take(&cluster, began.elapsed().as_secs_f64())?;
                    crate::progress(&format!(
                        "{:.0} s: {} sessions opened, {} held, {} streams, {} keys, {:.1} MiB, {} findings",
                        began.elapsed().as_secs_f64(),
                        counts.sessions.load(Ordering::Relaxed),
                        held.sessions,
                        held.streams,
                        held.keys,
                        samples.latest_mib(),
                        findings.count()
                    ));
                }
            }
        }
        outcome.seconds = began.elapsed().as_secs_f64();
        let cpu = process::measure(&cluster.pids())?
            .cpu
            .saturating_sub(cpu_before);
        figures(&mut outcome, &counts, cpu);
        samples.conclude(&mut outcome);
        self.expire(&mut outcome, &cluster).await?;
        outcome.violations = findings.violations();
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
        outcome.parameters(&[
            ("duration", &format!("{:?}", self.duration)),
            ("rate", rate),
            ("idle", &format!("{:?}", self.idle)),
            ("seed", &seed),
        ]);
        outcome
    }

    /// Returns a cluster that keeps state only for a short time.
    fn shape(&self) -> Shape {
        let settings = [
            ("SHOAL_SESSION__PASSIVATE_AFTER", "5s"),
            ("SHOAL_SESSION__SWEEP_EVERY", "1s"),
            ("SHOAL_STREAMS__RETENTION", "10s"),
            // Short times, because what workers remember against repeated executions must have its
            // full size before the first third of the run is over.
            ("SHOAL_POOLS__DEMO__BACKEND", "demo"),
            ("SHOAL_POOLS__DEMO__CALL_MEMORY", "30s"),
            ("SHOAL_POOLS__DEMO__RESULT_RETENTION", "10s"),
        ];
        let idle = (
            "SHOAL_SESSION__IDLE",
            format!("{}ms", self.idle.as_millis()),
        );
        let settings = settings.map(|(name, value)| (name, value.to_owned()));
        Shape {
            edges: self.edges,
            sessions: self.session_nodes,
            workers: self.workers,
            logs: self.logs.clone(),
            ..Shape::smallest(&settings.into_iter().chain([idle]).collect())
        }
    }

    async fn expire(&self, outcome: &mut Outcome, cluster: &Cluster) -> anyhow::Result<()> {
        let left = Instant::now();
        let patience = self.idle * 2 + EXPIRY_PATIENCE;
        let mut held = Held::read(cluster)?;
        while !held.is_nothing() && left.elapsed() < patience {
            sleep(Duration::from_secs(1)).await;
            held = Held::read(cluster)?;
            crate::progress(&format!("everybody has left: {held:?}"));
        }
        let seconds = left.elapsed().as_secs_f64();
        outcome.lower("until everything was gone", seconds, "s");
        for (what, value) in [
            ("keys in Redis after expiry", held.keys as u64),
            ("sessions on the nodes", held.sessions),
            ("open streams", held.streams),
            ("running calls", held.calls),
        ] {
            let what = format!("{what} {value}, {seconds:.0} s after the last client: 0");
            outcome.verdict(what, value == 0);
        }
        Ok(())
    }
}

fn figures(outcome: &mut Outcome, counts: &Counts, cpu: Duration) {
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed) as f64;
    for (name, value) in [
        ("sessions opened", &counts.sessions),
        ("requests and streams after that", &counts.requests),
        ("streams opened and dropped", &counts.streams),
        ("sessions ended by DELETE", &counts.deleted),
        ("sessions left to expire", &counts.abandoned),
        ("clients refused for a while (429, 503)", &counts.refused),
        (
            "clients not started: too many were busy",
            &counts.not_started,
        ),
    ] {
        outcome.plain(name, count(value), "");
    }
    let cores = cpu.as_secs_f64() / outcome.seconds;
    outcome.lower("cores used by all processes", cores, "");
    let per_session = cpu.as_secs_f64() * 1e6 / count(&counts.sessions).max(1.0);
    outcome.lower("CPU time a session's life", per_session, "µs");
}
