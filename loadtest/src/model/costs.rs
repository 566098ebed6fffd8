//! Costs that `loadtest cost` measures and `loadtest model` uses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) const ROLES: [&str; 4] = ["redis", "session", "edge", "worker"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Counted {
    /// The base cost.
    Second,
    Legacy,
    Modern,
    /// A journaled call, without its events.
    Journaled,
    /// An event of a journaled call before its answer.
    Event,
    /// Includes the connection.
    Open,
    /// Includes the connection.
    Stream,
    KeepAlive,
}

/// In the order of the fitted coefficients.
pub(crate) const COUNTED: [Counted; 8] = [
    Counted::Second,
    Counted::Legacy,
    Counted::Modern,
    Counted::Journaled,
    Counted::Event,
    Counted::Open,
    Counted::Stream,
    Counted::KeepAlive,
];

/// Costs in µs of CPU time or in commands of Redis, or numbers per second.
pub(crate) type Each = BTreeMap<Counted, f64>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Held {
    pub(crate) process: f64,
    /// An active session with its client's connection.
    pub(crate) session: f64,
    /// An idle stream, without its session.
    pub(crate) stream: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Costs {
    #[serde(default)]
    pub(crate) provenance: String,
    pub(crate) cpu_us: BTreeMap<String, Each>,
    /// Includes commands in scripts.
    pub(crate) redis_commands: Each,
    pub(crate) memory_kib: BTreeMap<String, Held>,
}

impl Costs {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let costs: Self = toml::from_str(text)?;
        for role in ROLES {
            anyhow::ensure!(
                costs.cpu_us.contains_key(role) && costs.memory_kib.contains_key(role),
                "the role {role} is missing: measure with `loadtest cost`"
            );
        }
        Ok(costs)
    }
}

/// Returns the costs of [`COUNTED`].
pub(crate) fn fitted(coefficients: &[f64]) -> Each {
    let rounded = coefficients
        .iter()
        .map(|value| (value * 1000.0).round() / 1000.0);
    COUNTED.into_iter().zip(rounded).collect()
}

/// Returns the value of each role, in the order of [`ROLES`].
pub(crate) fn by_role<T>(of: impl Fn(usize) -> T) -> BTreeMap<String, T> {
    let roles = ROLES.iter().enumerate();
    roles
        .map(|(at, role)| ((*role).to_owned(), of(at)))
        .collect()
}
