use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

pub(crate) const ROLES: [&str; 4] = ["redis", "session", "edge", "worker"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
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
pub(crate) const COUNTED: [Counted; 7] = [
    Counted::Legacy,
    Counted::Modern,
    Counted::Journaled,
    Counted::Event,
    Counted::Open,
    Counted::Stream,
    Counted::KeepAlive,
];

/// Costs in µs of CPU time, or in commands of Redis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Each {
    pub(crate) second: f64,
    pub(crate) legacy: f64,
    pub(crate) modern: f64,
    pub(crate) journaled: f64,
    pub(crate) event: f64,
    pub(crate) open: f64,
    pub(crate) stream: f64,
    pub(crate) keep_alive: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Held {
    pub(crate) process: f64,
    /// An active session with its client's connection.
    pub(crate) session: f64,
    /// An idle stream, without its session.
    pub(crate) stream: f64,
}

pub(crate) type Memory = BTreeMap<String, Held>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Costs {
    #[serde(default)]
    pub(crate) provenance: String,
    pub(crate) cpu_us: BTreeMap<String, Each>,
    /// Includes commands in scripts.
    pub(crate) redis_commands: Each,
    pub(crate) memory_kib: Memory,
}

impl Each {
    /// In `fit`, the base cost per second precedes the coefficients of [`COUNTED`].
    fn of_fit(fit: &[f64]) -> Self {
        let rounded = |at: usize| {
            let value = fit.get(at).copied().unwrap_or_default();
            (value * 1000.0).round() / 1000.0
        };
        let of = |what| {
            let at = COUNTED.iter().position(|counted| *counted == what);
            at.map_or(0.0, |at| rounded(at + 1))
        };
        Self {
            second: rounded(0),
            legacy: of(Counted::Legacy),
            modern: of(Counted::Modern),
            journaled: of(Counted::Journaled),
            event: of(Counted::Event),
            open: of(Counted::Open),
            stream: of(Counted::Stream),
            keep_alive: of(Counted::KeepAlive),
        }
    }
}

impl Costs {
    /// `roles` has the coefficients of [`ROLES`] in order, `commands` those of Redis' commands.
    pub(crate) fn of_fit(roles: &[Vec<f64>], commands: &[f64], memory_kib: Memory) -> Self {
        let each = ROLES.iter().zip(roles);
        Self {
            provenance: String::new(),
            cpu_us: each
                .map(|(role, fit)| ((*role).to_owned(), Each::of_fit(fit)))
                .collect(),
            redis_commands: Each::of_fit(commands),
            memory_kib,
        }
    }

    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("could not read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} holds no costs", path.display()))
    }

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

    pub(crate) fn to_toml(&self) -> anyhow::Result<String> {
        Ok(toml::to_string(self)?)
    }
}

/// Returns an idle process's memory, and its growth by a session and by a stream, measured with `crowd` of each.
pub(crate) fn memory(held: &[f64], sessions: &[f64], streams: &[f64], crowd: f64) -> Memory {
    let each = |grown: f64| (grown.max(0.0) / crowd * 100.0).round() / 100.0;
    let of = |at: usize| Held {
        process: held[at],
        session: each(sessions[at]),
        stream: each(streams[at]),
    };
    let roles = ROLES.iter().enumerate();
    roles
        .map(|(at, role)| ((*role).to_owned(), of(at)))
        .collect()
}
