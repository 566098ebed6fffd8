mod churn;
mod samples;
mod slope;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tokio::time::{Instant, interval_at, sleep};

use crate::cli::duration;
use crate::findings::Findings;
use crate::outcome::{Better, Outcome, Verdict};
use crate::process;
use crate::servers::cluster::member::Role;
use crate::servers::cluster::{Cluster, Shape};
use crate::target::Target;
use churn::{Churn, Counts};
use samples::{Held, Samples};

const EXPIRY_PATIENCE: Duration = Duration::from_secs(60);

/// The arguments of `loadtest soak`.
#[derive(Debug, Args)]
pub(crate) struct Soak {
    /// Shoal binary [default: `shoal` next to this program, if it exists].
    #[arg(long)]
    shoal: Option<PathBuf>,
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
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

pub(crate) async fn run(options: &Soak, progress: impl Fn(&str)) -> anyhow::Result<Outcome> {
    ensure!(options.rate > 0.0, "the rate must be above 0");
    let shoal = crate::servers::spawned::shoal_binary(options.shoal.as_deref())?;
    let seed = options.seed.unwrap_or_else(rand::random);
    let mut outcome = begin(options, seed);
    progress(&format!("seed {seed}"));
    let cluster = Cluster::start_as(&shoal, None, &shape(options))?;
    let mut targets = Vec::new();
    for edge in cluster.of(Role::Edge) {
        targets.push(Target::resolve(&edge.url).await?);
    }

    let began = Instant::now();
    let (counts, findings) = (Arc::<Counts>::default(), Arc::<Findings>::default());
    let churn = Churn {
        targets: targets.into(),
        rate: options.rate,
        seed,
        counts: Arc::clone(&counts),
        findings: Arc::clone(&findings),
    };
    let cpu_before = process::measure(&cluster.pids())?.cpu;
    let mut running = tokio::spawn(churn.run(began + options.duration));
    let mut samples = Samples::default();
    let mut readings = interval_at(began + options.every, options.every);
    loop {
        tokio::select! {
            ended = &mut running => break ended?,
            _ = readings.tick() => {
                // Blocks this thread's clients for some milliseconds.
                let held = samples.take(&cluster, began.elapsed().as_secs_f64())?;
                progress(&format!(
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
    expire(&mut outcome, options, &cluster, &progress).await?;
    outcome.violations = findings.violations();
    Ok(outcome)
}

fn begin(options: &Soak, seed: u64) -> Outcome {
    let title = format!(
        "{} sessions a second come and go, {} edges, {} session nodes, {} workers, Redis",
        options.rate, options.edges, options.session_nodes, options.workers
    );
    let mut outcome = Outcome::begin("soak", title);
    for (name, value) in [
        ("duration", format!("{:?}", options.duration)),
        ("rate", options.rate.to_string()),
        ("idle", format!("{:?}", options.idle)),
        ("seed", seed.to_string()),
    ] {
        outcome.parameters.insert(name.to_owned(), value);
    }
    outcome
}

fn shape(options: &Soak) -> Shape {
    let idle = format!("{}ms", options.idle.as_millis());
    Shape {
        edges: options.edges,
        sessions: options.session_nodes,
        combined: 0,
        workers: options.workers,
        environment: vec![
            ("SHOAL_SESSION__IDLE", idle.clone()),
            ("SHOAL_SESSION__PASSIVATE_AFTER", "5s".to_owned()),
            ("SHOAL_SESSION__SWEEP_EVERY", "1s".to_owned()),
            ("SHOAL_STREAMS__RETENTION", "10s".to_owned()),
            // The workers' memory of calls must have its full size before the first third of the
            // run is over.
            ("SHOAL_POOLS__DEMO__BACKEND", "demo".to_owned()),
            ("SHOAL_POOLS__DEMO__CALL_MEMORY", "30s".to_owned()),
            ("SHOAL_POOLS__DEMO__RESULT_RETENTION", "10s".to_owned()),
        ],
        logs: options.logs.clone(),
    }
}

fn figures(outcome: &mut Outcome, counts: &Counts, cpu: Duration) {
    let count = |of: &std::sync::atomic::AtomicU64| of.load(Ordering::Relaxed) as f64;
    for (name, value) in [
        ("sessions opened", count(&counts.sessions)),
        ("requests and streams after that", count(&counts.requests)),
        ("streams opened and dropped", count(&counts.streams)),
        ("sessions ended by DELETE", count(&counts.deleted)),
        ("sessions left to expire", count(&counts.abandoned)),
        (
            "clients refused for a while (429, 503)",
            count(&counts.refused),
        ),
        (
            "clients not started: too many were busy",
            count(&counts.not_started),
        ),
    ] {
        outcome.figure(name, value, "", Better::Neither);
    }
    let cores = cpu.as_secs_f64() / outcome.seconds;
    outcome.figure("cores used by all processes", cores, "", Better::Lower);
    let per_session = cpu.as_secs_f64() * 1e6 / count(&counts.sessions).max(1.0);
    outcome.figure(
        "CPU time a session's life",
        per_session,
        "µs",
        Better::Lower,
    );
}

async fn expire(
    outcome: &mut Outcome,
    options: &Soak,
    cluster: &Cluster,
    progress: &impl Fn(&str),
) -> anyhow::Result<()> {
    let left = Instant::now();
    let patience = options.idle * 2 + EXPIRY_PATIENCE;
    let mut held = Held::read(cluster)?;
    while !held.is_nothing() && left.elapsed() < patience {
        sleep(Duration::from_secs(1)).await;
        held = Held::read(cluster)?;
        progress(&format!("everybody has left: {held:?}"));
    }
    let seconds = left.elapsed().as_secs_f64();
    outcome.figure("until everything was gone", seconds, "s", Better::Lower);
    for (what, value) in [
        ("keys in Redis after expiry", held.keys as u64),
        ("sessions on the nodes", held.sessions),
        ("open streams", held.streams),
        ("running calls", held.calls),
    ] {
        outcome.verdicts.push(Verdict {
            what: format!("{what} {value}, {seconds:.0} s after the last client: 0"),
            held: Some(value == 0),
        });
    }
    Ok(())
}
