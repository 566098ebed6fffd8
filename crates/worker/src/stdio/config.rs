//! What an operator can say about a stdio server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{ListScope, Period, Secret, settings};

use super::child::INHERITED;
use super::placement::Placement;
use crate::upstream::{Binding, EraChoice, SHORT_PAUSE, Settings};

/// How the names of Shoal's own variables begin: its secrets are among them.
const OWN_VARIABLES: &str = "SHOAL_";
/// Processes that callers share, unless the configuration says otherwise.
const SHARED_PROCESSES: usize = 4;
/// Sessions that may have a process at once, likewise.
const SESSION_PROCESSES: usize = 64;

settings! {
    /// An MCP server that speaks over its standard input and output, of either era.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with command")]
    #[schemars(rename = "Stdio", extend("required" = ["command"]))]
    pub struct StdioConfig {
        /// The program, found on `PATH`; no shell reads it.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub command: String = String::new(),
        /// Its arguments.
        pub args: Vec<String> = Vec::new(),
        /// Environment variables to set for it. `config show` does not print the values.
        pub env: BTreeMap<String, Secret> = BTreeMap::new(),
        /// Variables to pass on from Shoal's own environment, besides the harmless ones (`PATH`, `HOME`, locale, proxies,
        /// certificates). `*` stands for any characters: `["AWS_*"]`, or `["*"]` for all. Shoal's own (`SHOAL_…`) are passed on
        /// by their whole names only.
        pub inherit: Vec<String> = Vec::new(),
        /// The directory that it starts in; Shoal's own if unset.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cwd: Option<PathBuf> = None,
        /// The calls that share a process ([stdio servers](stdio-servers.md#who-shares-a-process)).
        pub isolation: Isolation = Isolation::Session,
        /// Processes at most. Those of calls that wait for their clients' answers do not count
        /// ([stdio servers](stdio-servers.md#how-many-processes)). Unset: 64 for sessions, or 4 shared ones.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub processes: Option<usize> = None,
        /// A session's own process ends after this time without a call. If there are as many processes as allowed, it
        /// ends earlier, to make room for a session of a principal that has fewer.
        pub session_idle: Period = Period::seconds(300),
        /// Whether shared processes of a legacy server may ask clients (elicitation, sampling). If off, all calls
        /// share processes. If on, each call of a client that can be asked has a process to itself
        /// ([why](stdio-servers.md#one-call-in-a-process)). Turn it off for a server that never asks.
        pub may_ask: bool = true,
        /// Lets processes that all callers share ask for `roots` (`isolation = "shared"`). Only for servers of the legacy era that
        /// ask anew within each call: others keep the roots of one client for everybody.
        pub share_roots: bool = false,
        /// In which era the server is spoken to: `"auto"`, `"legacy"` (2025-11-25 and before) or `"modern"`
        /// (2026-07-28). `"auto"` is legacy where the server can be, since a server's requests to clients exist
        /// only there, and modern for tools that ask by `InputRequiredResult`
        /// ([backends](backends.md#servers-of-both-eras)).
        pub era: EraChoice = EraChoice::Auto,
        /// How long a process may take to answer the handshake without a word on standard error. Each line there gives it this
        /// long again, up to five times as long in all: `npx` and `uvx` fetch a server first.
        pub start_timeout: Period = Period::seconds(180),
        /// How long a process may say nothing to `initialize` before it is sent `server/discover` too.
        pub probe_timeout: Period = Period::seconds(2),
        /// How long a list or a subscription may take.
        pub request_timeout: Period = Period::seconds(30),
        /// How long a process may take to end after its input is closed, and again after `SIGTERM`.
        pub shutdown_grace: Period = Period::seconds(2),
        /// Bytes of one message from it.
        pub line_bytes: usize = 16 * 1024 * 1024,
        /// The pause before the first restart; it doubles with each failure in a row. A server that had started is started
        /// again as soon as a call needs it. Then only calls like those that ended it wait.
        pub restart_delay: Period = Period::millis(100),
        /// The longest pause before a restart.
        pub max_restart_delay: Period = Period::seconds(30),
    }
}

/// Who shares a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Nobody shares with others: each legacy session has a process of its own, and the calls without a session of one principal
    /// have a few.
    #[default]
    Session,
    // Calls whose client can be asked something run alone in theirs, see `StdioBackend`.
    /// All callers share a few processes; more than one is started only when calls would wait.
    Shared,
}

impl StdioConfig {
    /// A command without arguments, with the defaults for the rest.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            ..Self::default()
        }
    }

    /// How many processes there are at most, of the kind that `isolation` asks for.
    pub fn most_processes(&self) -> usize {
        self.processes.unwrap_or(match self.isolation {
            Isolation::Shared => SHARED_PROCESSES,
            Isolation::Session => SESSION_PROCESSES,
        })
    }

    /// For whom a process is that is no session's, beside the lead that is for everybody.
    pub(super) fn binding(&self, shared: &Binding) -> Binding {
        match self.isolation {
            Isolation::Shared => shared.clone(),
            Isolation::Session => shared.of_an_owner(),
        }
    }

    /// How many processes may serve callers without a session of their own.
    pub(super) fn placement(&self) -> Placement {
        let most = self.most_processes().max(1);
        match self.isolation {
            Isolation::Shared => Placement::new(most),
            // Besides the lead, which takes no calls.
            Isolation::Session => Placement::owned(most + 1, most.min(SHARED_PROCESSES)),
        }
    }

    /// The same for the modern side of a legacy server, whose calls all share.
    pub(super) fn modern_placement(&self) -> Placement {
        match self.isolation {
            Isolation::Shared => Placement::new(1),
            Isolation::Session => Placement::owned(self.most_processes().max(1), 1),
        }
    }

    /// What there is to say of the server whatever carries its messages.
    pub(super) fn settings(&self) -> Settings {
        // Where sessions have processes of their own, the lists of the shared one are theirs too, and servers offer tools
        // only to clients with the capabilities that these need.
        let per_session = self.isolation == Isolation::Session;
        Settings {
            era: self.era,
            shared: Binding::shared(
                self.may_ask || per_session,
                self.share_roots || per_session,
                self.share_roots,
            ),
            sessions_have_own: per_session,
            sessions: self.most_processes(),
            session_idle: self.session_idle.get(),
            start_timeout: self.start_timeout.get(),
            probe_timeout: self.probe_timeout.get(),
            restart_delay: self.restart_delay.get(),
            max_restart_delay: self.max_restart_delay.get(),
            headers: Vec::new(),
            lists: ListScope::Shared,
            waits_to_reopen: SHORT_PAUSE,
        }
    }

    /// Whether the server gets this variable from Shoal's own environment.
    pub(super) fn inherits(&self, name: &str) -> bool {
        let is_own = name.starts_with(OWN_VARIABLES);
        let named = |pattern: &String| {
            pattern == name || !is_own && shoal_ports::matches_pattern(pattern, name)
        };
        INHERITED.contains(&name) || self.inherit.iter().any(named)
    }

    /// Whether the server has this variable, set for it or passed on from Shoal's own environment.
    pub fn passes_on(&self, name: &str) -> bool {
        self.env.contains_key(name) || self.inherits(name)
    }
}
