mod call;
mod chance;
mod client;
mod memory;
mod replay;
mod session;
mod standalone;
mod tally;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::cli;
use crate::connection::Goodbye;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::job::Job;
use crate::process;
use crate::scenario::{Finished, Scenario};
use crate::servers::{Running, one_process};
use crate::target::Target;
use chance::Chance;
use client::Life;
use memory::{Memory, Samples};
use tally::{Snapshot, Tally};

const SAMPLE_PERIOD: Duration = Duration::from_secs(1);

const SAMPLES_PER_LINE: usize = 5;

/// Clients may run on for the sum of the last call's timeouts.
const END_GRACE: Duration = Duration::from_secs(75);

#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    clients: usize,
    seconds: f64,
    #[serde(flatten)]
    outcome: Snapshot,
    memory: Option<Memory>,
}

impl Finished for Report {
    fn is_correct(&self) -> bool {
        self.outcome.is_clean() && self.outcome.counts.answered > 0
    }
}

impl Scenario for cli::Resume {
    fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        let Some(program) = &self.shoal else {
            return run(self, &self.urls, &self.pids).await;
        };
        let server = Running::shoal(one_process(program, None)).await?;
        run(self, std::slice::from_ref(&server.url), &server.pids).await
    }
}

/// Violations are part of the report.
async fn run(options: &cli::Resume, urls: &[String], pids: &[u32]) -> anyhow::Result<Report> {
    ensure!(options.max_steps > 0, "a call needs at least one step");
    let seed = options.seed.unwrap_or_else(rand::random);
    crate::progress(&format!("seed {seed}"));
    let targets = Target::resolve_all(urls).await?;
    let [first, ..] = targets.as_slice() else {
        bail!("no URL to connect to");
    };
    let has_counter = probe(first).await?;
    let targets: Arc<[Target]> = targets.into();
    let tally = Arc::new(Tally::default());
    let longest = Job {
        steps: options.max_steps,
        interval: options.max_interval,
    };
    let began = Instant::now();
    let until = began + options.duration;
    let mut lives = JoinSet::new();
    for number in 0..options.clients {
        let life = Life {
            number,
            targets: Arc::clone(&targets),
            tally: Arc::clone(&tally),
            chance: Chance::new(seed, number, longest),
            until,
            has_counter,
        };
        lives.spawn(life.run());
    }

    let mut samples = Samples::default();
    let mut tick = tokio::time::interval(SAMPLE_PERIOD);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ticks = 0;
    let last = tokio::time::sleep_until(until + longest.length() + END_GRACE);
    tokio::pin!(last);
    loop {
        tokio::select! {
            ended = lives.join_next() => match ended {
                Some(ended) => ended?,
                None => break,
            },
            () = &mut last => {
                lives.shutdown().await;
                break;
            }
            _ = tick.tick() => {
                // Samples memory only under load, because later samples would lower the median of
                // the last third.
                if !pids.is_empty() && Instant::now() < until {
                    let usage = process::measure(pids)?;
                    samples.add(began.elapsed().as_secs_f64(), usage.rss_kib);
                }
                ticks += 1;
                if ticks % SAMPLES_PER_LINE == 0 {
                    crate::progress(&line(&tally.snapshot(), &samples, began.elapsed()));
                }
            }
        }
    }
    Ok(Report {
        seed,
        clients: options.clients,
        seconds: began.elapsed().as_secs_f64(),
        outcome: tally.snapshot(),
        memory: samples.summary(),
    })
}

fn line(snapshot: &Snapshot, samples: &Samples, elapsed: Duration) -> String {
    let memory = samples
        .latest_kib()
        .map_or(String::new(), |kib| format!(" | {:.1} MiB", kib / 1024.0));
    format!("{:>4} s: {snapshot}{memory}", elapsed.as_secs())
}

/// Fails without `long_job`. Returns whether it has the counter too.
async fn probe(target: &Target) -> anyhow::Result<bool> {
    let mut client = Client::open(target, Mode::Legacy, Goodbye::Finish)
        .await
        .with_context(|| format!("could not open a session at {}", target.address))?;
    let tools = client.tools().await?;
    client.end().await?;
    let has = |name: &str| tools.iter().any(|tool| tool == name);
    ensure!(has("long_job"), "the server has no tool long_job");
    Ok(has("increment_counter"))
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.outcome.counts;
        writeln!(
            out,
            "{} clients, {:.0} s, seed {}",
            self.clients, self.seconds, self.seed
        )?;
        writeln!(out, "{}", self.outcome)?;
        writeln!(
            out,
            "{} sessions, {} answered, {} half-open, {} server ends, {} retries, {} listens, {} increments, {} broken sessions",
            counts.sessions,
            counts.answered,
            counts.half_open,
            counts.server_ends,
            counts.retries,
            counts.listens,
            counts.increments,
            counts.broken_sessions
        )?;
        if let Some(memory) = &self.memory {
            writeln!(out, "{memory}")?;
        }
        for example in self.outcome.examples.iter().chain(&self.outcome.broken) {
            writeln!(out, "  {example}")?;
        }
        for (violation, count) in &self.outcome.violations {
            writeln!(out, "{violation:?}: {count}")?;
        }
        let verdict = if self.is_correct() {
            "no event lost, repeated or out of order"
        } else {
            "PROMISES BROKEN"
        };
        write!(out, "{verdict}")
    }
}
