//! Simulations use Shoal's own rules of placement and waiting, in one thread. Times are simulated, and a seed
//! determines the table.

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
    /// Event to simulate.
    #[arg(value_enum)]
    what: What,
    /// Seed of all random decisions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// Placement of sessions by many edges with slightly outdated knowledge.
    Skew,
    /// Return of the clients of a dead edge.
    Reconnect,
    /// Takeover of a dead node's sessions by the others.
    Claims,
    /// Changes of tool lists with many listeners.
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

/// The largest count relative to the mean; 0 without counts.
fn skew_of(counts: &[u64]) -> f64 {
    let sum: u64 = counts.iter().sum();
    let most = counts.iter().max().copied().unwrap_or_default();
    most as f64 * counts.len() as f64 / sum.max(1) as f64
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
