use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{ListScope, Period, Secret, settings};

use super::placement::ProcessPlacement;
use crate::upstream::{ConnectionBinding, EraChoice, SHORT_PAUSE, UpstreamSettings};

/// The prefix of Shoal's own variables, some of which are secrets.
const OWN_VARIABLES: &str = "SHOAL_";
/// The variables that the official SDKs' stdio clients pass on: for files, language and network.
const INHERITED: [&str; 31] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "LANG",
    "LC_ALL",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "ALL_PROXY",
    "all_proxy",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "XDG_CACHE_HOME",
    "APPDATA",
    "LOCALAPPDATA",
    "SYSTEMROOT",
    "TEMP",
    "USERPROFILE",
    "PATHEXT",
];
const SHARED_PROCESSES: usize = 4;
const SESSION_PROCESSES: usize = 64;

settings! {
    /// An MCP server that speaks over standard input and output.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with command")]
    #[schemars(rename = "Stdio", extend("required" = ["command"]))]
    pub struct StdioConfig {
        /// Program, from `PATH`. Shoal uses no shell.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub command: String = String::new(),
        /// Arguments.
        pub args: Vec<String> = Vec::new(),
        /// Environment variables.
        pub env: BTreeMap<String, Secret> = BTreeMap::new(),
        /// Variables that Shoal passes on, such as `["AWS_*"]`, or `["*"]` for all, besides [common
        /// ones](stdio-servers.md#the-environment-of-a-server). Write names that begin with `SHOAL_` in full.
        pub inherit: Vec<String> = Vec::new(),
        /// Working directory; by default Shoal's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cwd: Option<PathBuf> = None,
        /// Callers that [share](stdio-servers.md#who-shares-a-process) a process.
        pub isolation: Isolation = Isolation::Session,
        /// Maximum [processes](stdio-servers.md#how-many-processes) of each worker; by default 64, or 4 with `isolation
        /// = "shared"`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub processes: Option<usize> = None,
        /// How long an unused session keeps its process or its session at the server.
        pub session_idle: Period = Period::seconds(300),
        /// Lets legacy processes that callers share ask clients. While a call that may ask runs, its process [runs no
        /// other call](stdio-servers.md#one-call-in-a-process). If your server does not ask, set this to false.
        pub may_ask: bool = true,
        /// Lets shared processes ask for `roots`. Set this only for legacy servers that ask in each call: other servers
        /// keep one client's roots.
        pub share_roots: bool = false,
        /// Era in which Shoal opens the server ([backends](backends.md#servers-of-both-eras)).
        pub era: EraChoice = EraChoice::Auto,
        /// Maximum silence before the handshake. Each line on standard error starts this time again, for up to five
        /// times as long in all.
        pub start_timeout: Period = Period::seconds(180),
        /// How long the server may ignore `initialize` before Shoal sends `server/discover`.
        pub probe_timeout: Period = Period::seconds(2),
        /// Time limit of a list, subscription or ping request.
        pub request_timeout: Period = Period::seconds(30),
        /// Time to end a session. A process gets this time after Shoal closes its input, and again after `SIGTERM`.
        pub shutdown_grace: Period = Period::seconds(2),
        /// Maximum bytes of a message.
        pub line_bytes: usize = 16 * 1024 * 1024,
        /// First pause before a restart or reconnection. Each failure doubles the pause.
        pub restart_delay: Period = Period::millis(100),
        /// Maximum pause before a restart or reconnection.
        pub max_restart_delay: Period = Period::seconds(30),
    }
}

/// Callers that share a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Each legacy session has its own. A principal's other calls share a few.
    #[default]
    Session,
    // A call whose client can be asked has its process to itself, see `StdioBackend`.
    /// All callers share a few. Shoal starts more when calls would wait.
    Shared,
}

impl StdioConfig {
    /// Creates the default settings of a command without arguments.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            ..Self::default()
        }
    }

    /// Returns the maximum number of processes for this `isolation`.
    pub fn most_processes(&self) -> usize {
        self.processes.unwrap_or(match self.isolation {
            Isolation::Shared => SHARED_PROCESSES,
            Isolation::Session => SESSION_PROCESSES,
        })
    }

    pub(super) fn binding(&self, shared: &ConnectionBinding) -> ConnectionBinding {
        match self.isolation {
            Isolation::Shared => shared.clone(),
            Isolation::Session => shared.of_an_owner(),
        }
    }

    pub(super) fn placement(&self) -> ProcessPlacement {
        let most = self.most_processes().max(1);
        match self.isolation {
            Isolation::Shared => ProcessPlacement::new(most),
            // One more for the lead process, which takes no calls.
            Isolation::Session => ProcessPlacement::owned(most + 1, most.min(SHARED_PROCESSES)),
        }
    }

    pub(super) fn modern_placement(&self) -> ProcessPlacement {
        match self.isolation {
            Isolation::Shared => ProcessPlacement::new(1),
            Isolation::Session => ProcessPlacement::owned(self.most_processes().max(1), 1),
        }
    }

    pub(super) fn settings(&self) -> UpstreamSettings {
        // Servers offer some tools only to clients with certain capabilities. Session processes use
        // the shared process's lists, so that process declares all capabilities.
        let per_session = self.isolation == Isolation::Session;
        UpstreamSettings {
            era: self.era,
            shared: ConnectionBinding::shared(
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

    pub(super) fn inherits(&self, name: &str) -> bool {
        let is_own = name.starts_with(OWN_VARIABLES);
        let named = |pattern: &String| {
            pattern == name || !is_own && shoal_ports::matches_pattern(pattern, name)
        };
        INHERITED.contains(&name) || self.inherit.iter().any(named)
    }

    /// Returns whether the server gets this variable.
    pub fn passes_on(&self, name: &str) -> bool {
        self.env.contains_key(name) || self.inherits(name)
    }
}
