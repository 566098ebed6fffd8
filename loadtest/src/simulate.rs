//! Simulates hot spots in one thread, with Shoal's own rules of placement and waiting. Times are
//! simulated, and a seed determines the table.

mod claims;
mod lists;
mod reconnect;
mod skew;

use std::time::Duration;

use clap::{Args, ValueEnum};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// `loadtest simulate`.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// What is simulated.
    #[arg(value_enum)]
    what: What,
    /// Fixes every random decision.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// Sessions placed by many edges that know a little less than all.
    Skew,
    /// The clients of an edge that died, coming back.
    Reconnect,
    /// The sessions of a node that died, taken by the others.
    Claims,
    /// Tool lists that change while many listen.
    ListChanged,
}

pub(crate) fn run(arguments: &Simulate) -> String {
    let mut rng = StdRng::seed_from_u64(arguments.seed);
    match arguments.what {
        What::Skew => skew::table(&mut rng),
        What::Reconnect => reconnect::table(&mut rng),
        What::Claims => claims::table(&mut rng),
        What::ListChanged => lists::table(),
    }
}

/// Ratio of the maximum to the mean; 0 without counts.
fn skew_of(counts: &[u64]) -> f64 {
    let sum: u64 = counts.iter().sum();
    let most = counts.iter().max().copied().unwrap_or_default();
    most as f64 * counts.len() as f64 / sum.max(1) as f64
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
