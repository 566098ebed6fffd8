mod crowd;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::cli::duration;
use crate::engine::mix::Kind;
use crate::findings::Findings;
use crate::mcp::Mode::{self, Legacy, Modern};
use crate::outcome::Outcome;
use crate::servers::shoal_binary;
use crate::turns::setup::Features;
use crate::turns::{Bench, Case, FLOOR, Server};
use Server::{Cluster, Shoal};

/// Maximum ratio of the cost of a byte to the floor's.
const BAR: f64 = 1.5;

const LARGE: usize = 1 << 20;

/// The arguments of `loadtest payload`.
#[derive(Debug, Args)]
pub(crate) struct Payload {
    /// Shoal binary [default: `shoal` next to this program, if it exists].
    #[arg(long)]
    shoal: Option<PathBuf>,
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
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

const CASES: [(&str, Server, Mode); 5] = [
    ("floor", FLOOR, Legacy),
    ("shoal legacy", Shoal, Legacy),
    ("shoal modern", Shoal, Modern),
    ("cluster legacy", Cluster, Legacy),
    ("cluster modern", Cluster, Modern),
];

impl Payload {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        let Self {
            sizes, sessions, ..
        } = self;
        ensure!(sizes.iter().all(|&size| size > 0), "a size must be above 0");
        let shoal = shoal_binary(self.shoal.as_deref())?;
        let title = format!("echo of {sizes:?} bytes, {sessions} sessions");
        let mut outcome = Outcome::begin("payload", title);
        let began = std::time::Instant::now();
        let findings = Findings::default();
        self.costs(&shoal, &mut outcome).await?;
        if let Some(&largest) = sizes.iter().max() {
            crowd::measure(&shoal, largest, &self.clients, &mut outcome, &findings).await?;
        }
        outcome.seconds = began.elapsed().as_secs_f64();
        outcome.violations.extend(findings.violations());
        Ok(outcome)
    }
}

impl Payload {
    async fn costs(&self, shoal: &Path, outcome: &mut Outcome) -> anyhow::Result<()> {
        let bench = Bench {
            shoal: Some(shoal.to_owned()),
            cores: None,
            peers: PathBuf::new(),
            sessions: self.sessions,
            warmup: self.warmup,
            time: self.duration,
            rounds: self.rounds,
            awake: false,
        };
        let named = |case: &str, size: usize| format!("{case}, {size} B");
        let of_size = |&size: &usize| {
            CASES.map(|(name, server, mode)| Case {
                name: named(name, size),
                base: named("floor", size),
                mode,
                server,
                kind: Kind::Payload(size),
                tool: "echo",
                features: Features::DEFAULT,
            })
        };
        let mut cases: Vec<Case> = self.sizes.iter().flat_map(of_size).collect();
        cases.retain(|case| !(self.no_cluster && case.server == Cluster));
        let (rows, _) = bench.measure(&cases, Vec::new()).await?;
        for (case, row) in cases.iter().zip(&rows) {
            let Kind::Payload(size) = case.kind else {
                continue;
            };
            let (name, per_byte) = (&row.case, row.cpu_us_per_call.median * 1e3 / size as f64);
            outcome.lower(format!("{name}: CPU a byte"), per_byte, "ns");
            if let (Some(times), false) = (&row.times_base, case.server == FLOOR) {
                let ratio = times.median;
                outcome.lower(format!("{name}: CPU a byte over the floor's"), ratio, "×");
                if size >= LARGE {
                    let what =
                        format!("{name}: {ratio:.2} × the floor's CPU a byte: at most {BAR} ×");
                    outcome.verdict(what, ratio <= BAR);
                }
            }
            row.violations(outcome);
        }
        Ok(())
    }
}
