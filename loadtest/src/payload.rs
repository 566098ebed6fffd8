mod cost;
mod crowd;

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::cli::duration;
use crate::outcome::Outcome;
use crate::scenario::{Finished, Scenario, Subject};

/// Maximum ratio of the cost of a byte to the floor's.
const BAR: f64 = 1.5;

const LARGE: usize = 1 << 20;

/// The arguments of `loadtest payload`.
#[derive(Debug, Args)]
pub(crate) struct Payload {
    #[command(flatten)]
    subject: Subject,
    /// Lengths of the echoed text, in bytes, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1 << 20, 64 << 10, 1 << 10])]
    sizes: Vec<usize>,
    /// Number of sessions that call at the same time while CPU time is measured.
    #[arg(long, default_value_t = 8)]
    sessions: usize,
    /// Time to measure each case in each round.
    #[arg(long, default_value = "5s", value_parser = duration)]
    duration: Duration,
    /// Time under load before the measurement.
    #[arg(long, default_value = "1s", value_parser = duration)]
    warmup: Duration,
    /// Number of turns of each case; 0 skips the measurement of CPU time.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Numbers of clients that send the largest text at the same time, to measure memory; one row each. The texts of
    /// the last two must together exceed Shoal's limit on bodies (`limits.body_room`), otherwise the limit has no
    /// effect on them.
    #[arg(long, value_delimiter = ',', default_values_t = [50, 200, 400, 800])]
    clients: Vec<usize>,
    /// Skip the cluster, which needs `redis-server`.
    #[arg(long)]
    no_cluster: bool,
}

impl Scenario for Payload {
    const THREADS: Option<usize> = Some(1);

    fn json(&self) -> Option<&Path> {
        self.subject.json()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        ensure!(
            self.sizes.iter().all(|&size| size > 0),
            "a size must be above 0"
        );
        let shoal = self.subject.shoal()?;
        let Self {
            sizes, sessions, ..
        } = self;
        let title = format!("echo of {sizes:?} bytes, {sessions} sessions");
        let mut outcome = Outcome::begin("payload", title);
        outcome.parameters(&[
            ("sizes", &format!("{sizes:?}")),
            ("sessions", sessions),
            ("duration", &format!("{:?}", self.duration)),
            ("rounds", &self.rounds),
            ("clients", &format!("{:?}", self.clients)),
        ]);
        let began = std::time::Instant::now();
        let findings = crate::findings::Findings::default();
        if self.rounds > 0 {
            cost::measure(self, &shoal, &mut outcome, &findings).await?;
        }
        if let Some(&largest) = sizes.iter().max() {
            crowd::measure(&shoal, largest, &self.clients, &mut outcome, &findings).await?;
        }
        outcome.seconds = began.elapsed().as_secs_f64();
        outcome.violations = findings.violations();
        Ok(outcome)
    }
}

fn judge(outcome: &mut Outcome, case: &str, size: usize, ratio: f64) {
    outcome.lower(
        format!("{case}, {size} B: CPU a byte over the floor's"),
        ratio,
        "×",
    );
    if size >= LARGE {
        let what =
            format!("{case}, {size} B: {ratio:.2} × the floor's CPU a byte: at most {BAR} ×");
        outcome.verdict(what, ratio <= BAR);
    }
}
