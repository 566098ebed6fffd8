mod cost;
mod crowd;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::cli::duration;
use crate::outcome::{Better, Outcome, Verdict};

/// Maximum ratio of the cost of a byte to the floor's.
const BAR: f64 = 1.5;

const LARGE: usize = 1 << 20;

/// The arguments of `loadtest payload`.
#[derive(Debug, Args)]
pub(crate) struct Payload {
    /// Shoal binary [default: `shoal` next to this program, if it exists].
    #[arg(long)]
    shoal: Option<PathBuf>,
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
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

pub(crate) async fn run(options: &Payload, progress: impl Fn(&str)) -> anyhow::Result<Outcome> {
    ensure!(
        options.sizes.iter().all(|&size| size > 0),
        "a size must be above 0"
    );
    let shoal = crate::servers::spawned::shoal_binary(options.shoal.as_deref())?;
    let mut outcome = Outcome::begin(
        "payload",
        format!(
            "echo of {:?} bytes, {} sessions",
            options.sizes, options.sessions
        ),
    );
    for (name, value) in [
        ("sizes", format!("{:?}", options.sizes)),
        ("sessions", options.sessions.to_string()),
        ("duration", format!("{:?}", options.duration)),
        ("rounds", options.rounds.to_string()),
        ("clients", format!("{:?}", options.clients)),
    ] {
        outcome.parameters.insert(name.to_owned(), value);
    }
    let began = std::time::Instant::now();
    let findings = crate::findings::Findings::default();
    if options.rounds > 0 {
        cost::measure(options, &shoal, &mut outcome, &findings, &progress).await?;
    }
    if let Some(&largest) = options.sizes.iter().max() {
        let crowd = crowd::Plan {
            shoal: &shoal,
            bytes: largest,
            clients: &options.clients,
        };
        crowd.measure(&mut outcome, &findings, &progress).await?;
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.violations = findings.violations();
    Ok(outcome)
}

fn judge(outcome: &mut Outcome, case: &str, size: usize, ratio: f64) {
    outcome.figure(
        format!("{case}, {size} B: CPU a byte over the floor's"),
        ratio,
        "×",
        Better::Lower,
    );
    if size >= LARGE {
        outcome.verdicts.push(Verdict {
            what: format!("{case}, {size} B: {ratio:.2} × the floor's CPU a byte: at most {BAR} ×"),
            held: Some(ratio <= BAR),
        });
    }
}
