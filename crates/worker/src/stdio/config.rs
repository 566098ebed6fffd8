//! What an operator can say about a stdio server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::child::INHERITED;

/// How to run a stdio server. [`StdioConfig::new`] has the defaults.
#[derive(Clone)]
pub struct StdioConfig {
    /// The program, looked up on `PATH` where it has no slash.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables to set. Values may be secrets: they are never printed.
    pub env: BTreeMap<String, String>,
    /// Further variables that are passed on from Shoal's own environment. Without them the server
    /// gets only the harmless ones (`PATH`, `HOME`, locale, proxies, certificates): Shoal's
    /// environment holds keys that are no business of a third party's program.
    pub inherit: Vec<String>,
    /// Working directory; Shoal's own by default.
    pub cwd: Option<PathBuf>,
    /// Which calls share a process.
    pub isolation: Isolation,
    /// Whether the server may ask clients (elicitation, sampling) in shared processes. Turning it off
    /// for a legacy server that never asks lets all calls share: otherwise each call of a client that
    /// can be asked has a process to itself, so that no more of them run at once than there are
    /// processes.
    pub may_ask: bool,
    /// Lets shared processes of a legacy server ask for `roots`. Off, because roots belong to the
    /// connection and servers keep them: the roots of one client would become everybody's. Only for
    /// servers that ask anew within each call. A session's own process is always told that its
    /// client has roots, if it has.
    pub share_roots: bool,
    /// In which era the server is spoken to.
    pub era: EraChoice,
    /// How long a process may take to answer the handshake.
    pub start_timeout: Duration,
    /// How long a process may say nothing to `initialize` before it is sent `server/discover` too.
    pub probe_timeout: Duration,
    /// How long a list or a subscription may take.
    pub request_timeout: Duration,
    /// How long a process may take to end after its input is closed, and again after `SIGTERM`.
    pub shutdown_grace: Duration,
    /// The longest line that a server may write.
    pub max_line_bytes: usize,
    /// The pause before the first restart; doubles with each failure in a row.
    pub restart_delay: Duration,
    /// The longest pause before a restart.
    pub max_restart_delay: Duration,
}

/// In which era a server is spoken to.
// Requests of servers to clients exist only in the legacy era. Tools that ask by `InputRequiredResult`, which exists only in
// the modern one, are called in a modern process of the same server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Era")]
pub enum EraChoice {
    /// Legacy if it can be, modern for what exists only there.
    #[default]
    Auto,
    /// Up to 2025-11-25: `initialize`.
    Legacy,
    /// From 2026-07-28 on: `server/discover`.
    Modern,
}

/// Which calls share a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All sessions share a few processes. Calls whose client can be asked something run alone in
    /// theirs, see [`StdioBackend`](crate::StdioBackend).
    Worker {
        /// How many processes at most, beside those of calls that wait for answers of their clients. Those are at most as
        /// many for one principal, and twice as many for all. More than one is started only when calls would wait.
        processes: usize,
    },
    /// Each legacy session has a process of its own, with all the state that the server keeps in
    /// it. Callers without a session share processes as in `Worker`.
    Session {
        /// How many sessions may have a process at once. Beyond it one that is idle gives its process up, of the principal
        /// that has most; if none can, calls wait, and are refused as overloaded.
        max_processes: usize,
        /// After how long without a call a session's process is ended.
        idle: Duration,
    },
}

impl Isolation {
    /// Processes shared by all sessions, unless configured otherwise.
    pub const DEFAULT_PROCESSES: usize = 4;

    /// A process per session, with the default limits.
    pub const fn per_session() -> Self {
        Self::Session {
            max_processes: 64,
            idle: Duration::from_secs(300),
        }
    }

    /// How many processes may serve callers that share.
    pub(super) fn shared_processes(self) -> usize {
        match self {
            Self::Worker { processes } => processes.max(1),
            Self::Session { .. } => Self::DEFAULT_PROCESSES,
        }
    }
}

impl Default for Isolation {
    fn default() -> Self {
        Self::Worker {
            processes: Self::DEFAULT_PROCESSES,
        }
    }
}

impl StdioConfig {
    /// A command without arguments, with the default limits.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit: Vec::new(),
            cwd: None,
            isolation: Isolation::default(),
            may_ask: true,
            share_roots: false,
            era: EraChoice::Auto,
            start_timeout: Duration::from_secs(30),
            probe_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(2),
            max_line_bytes: 16 * 1024 * 1024,
            restart_delay: Duration::from_millis(100),
            max_restart_delay: Duration::from_secs(30),
        }
    }
}

impl StdioConfig {
    /// Whether the server has this variable, set for it or passed on from Shoal's own environment.
    pub fn passes_on(&self, name: &str) -> bool {
        self.env.contains_key(name)
            || self.inherit.iter().any(|other| other == name)
            || INHERITED.contains(&name)
    }
}

impl fmt::Debug for StdioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioConfig")
            .field("command", &self.command)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("inherit", &self.inherit)
            .field("cwd", &self.cwd)
            .field("isolation", &self.isolation)
            .finish_non_exhaustive()
    }
}
