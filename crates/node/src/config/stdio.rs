//! `[pools.<name>.backend.stdio]`: how a stdio server is run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_worker::{EraChoice, Isolation as Shared, StdioConfig};

use super::{Period, Secret};

/// An MCP server that speaks over its standard input and output, of either era.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with command")]
pub struct Stdio {
    /// The program, found on `PATH`; no shell reads it.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables to set for it. `config show` does not print the values.
    #[serde(default)]
    pub env: BTreeMap<String, Secret>,
    /// Variables to pass on from Shoal's own environment, besides the harmless ones (`PATH`, `HOME`,
    /// locale, proxies, certificates).
    #[serde(default)]
    pub inherit: Vec<String>,
    /// The directory that it starts in; Shoal's own if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Who shares a process.
    #[serde(default)]
    pub isolation: Isolation,
    /// Processes at most, beside those of calls that wait for their clients' answers
    /// ([backends](backends.md#how-many-processes)). Unset: 4 shared ones, or 64 for sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
    /// After how long without a call a session's own process is ended. It is given up before that for a session of a
    /// principal that has fewer, when there are as many as there may be.
    #[serde(default = "default_session_idle")]
    pub session_idle: Period,
    /// Whether shared processes of a legacy server may ask clients (elicitation, sampling). Off, all calls share; else
    /// each call of a client that can be asked has a process to itself ([why](backends.md#one-call-in-a-process)). Turn it off
    /// for a server that never asks.
    #[serde(default = "default_may_ask")]
    pub may_ask: bool,
    /// Lets shared processes of a legacy server ask for `roots`. Only for servers that ask anew within
    /// each call: others keep the roots of one client for everybody.
    #[serde(default)]
    pub share_roots: bool,
    /// In which era the server is spoken to: `"auto"`, `"legacy"` (2025-11-25 and before) or `"modern"`
    /// (2026-07-28). `"auto"` is legacy where the server can be, since a server's requests to clients exist
    /// only there, and modern for tools that ask by `InputRequiredResult`
    /// ([backends](backends.md#servers-of-both-eras)).
    #[serde(default)]
    pub era: EraChoice,
    /// How long a process may take to answer the handshake.
    #[serde(default = "default_start_timeout")]
    pub start_timeout: Period,
    /// How long a process may say nothing to `initialize` before it is sent `server/discover` too.
    #[serde(default = "default_probe_timeout")]
    pub probe_timeout: Period,
    /// How long a list or a subscription may take.
    #[serde(default = "default_request_timeout")]
    pub request_timeout: Period,
    /// How long a process may take to end after its input is closed, and again after `SIGTERM`.
    #[serde(default = "default_shutdown_grace")]
    pub shutdown_grace: Period,
    /// Bytes of one message from it.
    #[serde(default = "default_line_bytes")]
    pub line_bytes: usize,
    /// The pause before the first restart; it doubles with each failure in a row.
    #[serde(default = "default_restart_delay")]
    pub restart_delay: Period,
    /// The longest pause before a restart.
    #[serde(default = "default_max_restart_delay")]
    pub max_restart_delay: Period,
}

/// Who shares a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// All callers share a few processes; more than one is started only when calls would wait.
    #[default]
    Shared,
    /// Each legacy session has a process of its own; callers without a session share.
    Session,
}

fn stdio() -> StdioConfig {
    StdioConfig::new("")
}

fn default_may_ask() -> bool {
    stdio().may_ask
}

fn default_start_timeout() -> Period {
    stdio().start_timeout.into()
}

fn default_probe_timeout() -> Period {
    stdio().probe_timeout.into()
}

fn default_request_timeout() -> Period {
    stdio().request_timeout.into()
}

fn default_shutdown_grace() -> Period {
    stdio().shutdown_grace.into()
}

fn default_line_bytes() -> usize {
    stdio().max_line_bytes
}

fn default_restart_delay() -> Period {
    stdio().restart_delay.into()
}

fn default_max_restart_delay() -> Period {
    stdio().max_restart_delay.into()
}

fn default_session_idle() -> Period {
    session_limits().1.into()
}

/// Processes and idle time of `isolation = "session"`, by default.
fn session_limits() -> (usize, Duration) {
    match Shared::per_session() {
        Shared::Session {
            max_processes,
            idle,
        } => (max_processes, idle),
        Shared::Worker { processes } => (processes, Duration::ZERO),
    }
}

impl Stdio {
    /// What the backend is built with.
    pub fn to_backend(&self) -> StdioConfig {
        StdioConfig {
            args: self.args.clone(),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect(),
            inherit: self.inherit.clone(),
            cwd: self.cwd.clone(),
            isolation: self.to_isolation(),
            may_ask: self.may_ask,
            share_roots: self.share_roots,
            era: self.era,
            start_timeout: self.start_timeout.get(),
            probe_timeout: self.probe_timeout.get(),
            request_timeout: self.request_timeout.get(),
            shutdown_grace: self.shutdown_grace.get(),
            max_line_bytes: self.line_bytes,
            restart_delay: self.restart_delay.get(),
            max_restart_delay: self.max_restart_delay.get(),
            ..StdioConfig::new(&self.command)
        }
    }

    /// How many processes there are at most.
    pub(crate) fn most_processes(&self) -> usize {
        match self.to_isolation() {
            Shared::Worker { processes } => processes,
            Shared::Session { max_processes, .. } => max_processes,
        }
    }

    fn to_isolation(&self) -> Shared {
        match self.isolation {
            Isolation::Shared => Shared::Worker {
                processes: self.processes.unwrap_or(Shared::DEFAULT_PROCESSES),
            },
            Isolation::Session => Shared::Session {
                max_processes: self.processes.unwrap_or(session_limits().0),
                idle: self.session_idle.get(),
            },
        }
    }
}
