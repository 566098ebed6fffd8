//! The settings of the dispatcher.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the dispatcher; [`Config::default`] is a sensible server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What the server calls itself. Default: the `serverInfo` of the pool if there is just one, else
    /// the name `shoal`.
    pub server_info: Option<ServerInfo>,
    /// Instructions for models, in place of the pools' own.
    pub instructions: Option<String>,
    /// Items on one page of a list. Default: 1000.
    pub page_size: usize,
    /// For how many milliseconds a modern client may keep a list. Default: 60000.
    pub list_ttl_ms: u64,
    /// Who may share a list that was kept. Default: `public`.
    pub list_cache_scope: CacheScope,
    /// For how many milliseconds a modern client may keep a resource, where its backend says nothing.
    /// Default: 0.
    pub read_ttl_ms: u64,
    /// Who may share a resource that was kept, where its backend says nothing. Default: `private`.
    pub read_cache_scope: CacheScope,
    /// For how many milliseconds a change of the lists is kept back from clients, while calls and lists
    /// follow it at once. Where there are several nodes, all of them should know the new list by the time that
    /// a client is told to fetch it. Default: 0.
    pub announce_after_ms: u64,
    /// For how many milliseconds after its start a dispatcher refuses what it does not know as safe to send again:
    /// workers of other processes may be on their way. Default: 0, for workers of this process alone.
    pub learn_for_ms: u64,
    /// For how many milliseconds after its start lists wait at most for pools that are on their way. Default: 0, for
    /// workers of this process alone.
    pub settle_within_ms: u64,
    /// Whether arguments are checked against a tool's `inputSchema` before a worker sees them.
    /// Default: true.
    pub validate_arguments: bool,
    /// How many steps the check of one call's arguments may take; a call that needs more is refused. A step is about
    /// one look at one value. Default: 10000000.
    pub validation_steps: u64,
    /// How many workers a call is offered to before it fails. Default: 3.
    pub start_attempts: usize,
    /// For how many milliseconds a call whose worker is not connected waits for it to come back, where it
    /// can go on nowhere else. Default: 5000.
    pub reconnect_wait_ms: u64,
    /// How many failures in a row (a broken connection, an unknown outcome, a refusal that is not for lack
    /// of room) open a worker's circuit: it is left alone for a while. 0 means never. Default: 5.
    pub circuit_failures: u32,
    /// For how many milliseconds a circuit opens the first time; twice as long after each failed trial, and
    /// up to half of it is taken off at random. Default: 1000.
    pub circuit_open_ms: u64,
    /// For how many milliseconds a circuit opens at most. Default: 30000.
    pub circuit_open_max_ms: u64,
    /// How often one call of a legacy client may ask for input by `InputRequiredResult`. Default: 16.
    pub max_rounds: u32,
    /// How long a call waits for a modern client's answers, in seconds; also how long a `requestState`
    /// is valid. Default: 600.
    pub parking_time_secs: u64,
    /// By how many seconds the clocks of two nodes may differ without a `requestState` that one of them sealed expiring
    /// too early at the other. Default: 300.
    pub clock_skew_secs: u64,
    /// How many calls may wait for answers on this node. Default: 10000.
    pub max_parked: usize,
    /// How many calls of one principal may wait for answers on this node. Default: 1000.
    pub max_parked_per_principal: usize,
    /// Settings of single pools, by name. A pool that is not named here has the defaults.
    pub pools: BTreeMap<String, PoolConfig>,
}

/// Settings of one pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PoolConfig {
    /// Put before the names of the pool's tools and prompts. Default: nothing.
    pub prefix: String,
    /// Which of the pool's tool calls are journaled. Default: `auto`.
    pub durability: DurabilityPolicy,
    /// Tools, by the backend's name, that are safe to repeat whatever else is said.
    pub repeatable: Vec<String>,
    /// Tools, by the backend's name, that are never repeated whatever else is said.
    pub journaled: Vec<String>,
    /// Which calls go to the same worker where possible. Default: `none`.
    pub affinity: Affinity,
    /// For how many seconds what the pool offers stays listed after its last worker has gone; its calls are
    /// refused as safe to send again meanwhile. Default: 60.
    pub linger_secs: u64,
}

/// Which calls of a pool go to the same worker, as long as that one takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Affinity {
    /// None: the less busy of two goes first.
    #[default]
    None,
    /// All of them, so that a server which keeps its state in its process has one process; the other
    /// workers stand by.
    All,
    /// Those of one legacy session; of one principal, for modern callers.
    Session,
    /// Those with the same value of the argument of this name; calls without it go anywhere.
    Key(String),
}

/// Which tool calls of a pool are journaled, so that they are never executed twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityPolicy {
    /// Those of tools that do not declare `readOnlyHint` or `idempotentHint`.
    #[default]
    Auto,
    /// None: every tool is safe to repeat.
    Never,
    /// All.
    Always,
}

/// `cacheScope` of a cacheable result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Anybody may get the copy.
    Public,
    /// Only the same principal may.
    Private,
}

/// `Implementation` of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerInfo {
    /// The name for programs.
    pub name: String,
    /// The version.
    pub version: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the server is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server_info: None,
            instructions: None,
            page_size: 1000,
            list_ttl_ms: 60_000,
            list_cache_scope: CacheScope::Public,
            read_ttl_ms: 0,
            read_cache_scope: CacheScope::Private,
            announce_after_ms: 0,
            learn_for_ms: 0,
            settle_within_ms: 0,
            validate_arguments: true,
            validation_steps: 10_000_000,
            start_attempts: 3,
            reconnect_wait_ms: 5_000,
            circuit_failures: 5,
            circuit_open_ms: 1_000,
            circuit_open_max_ms: 30_000,
            max_rounds: 16,
            parking_time_secs: 600,
            clock_skew_secs: 300,
            max_parked: 10_000,
            max_parked_per_principal: 1_000,
            pools: BTreeMap::new(),
        }
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            durability: DurabilityPolicy::default(),
            repeatable: Vec::new(),
            journaled: Vec::new(),
            affinity: Affinity::default(),
            linger_secs: 60,
        }
    }
}

/// The settings of pools that the configuration does not name.
static UNNAMED: LazyLock<PoolConfig> = LazyLock::new(PoolConfig::default);

impl Config {
    pub(crate) fn parking_time(&self) -> Duration {
        Duration::from_secs(self.parking_time_secs)
    }

    pub(crate) fn announce_after(&self) -> Duration {
        Duration::from_millis(self.announce_after_ms)
    }

    pub(crate) fn learn_for(&self) -> Duration {
        Duration::from_millis(self.learn_for_ms)
    }

    pub(crate) fn settle_within(&self) -> Duration {
        Duration::from_millis(self.settle_within_ms)
    }

    pub(crate) fn reconnect_wait(&self) -> Duration {
        Duration::from_millis(self.reconnect_wait_ms)
    }

    /// The settings of a pool.
    pub(crate) fn pool(&self, name: &str) -> &PoolConfig {
        self.pools.get(name).unwrap_or(&UNNAMED)
    }
}

impl PoolConfig {
    pub(crate) fn linger(&self) -> Duration {
        Duration::from_secs(self.linger_secs)
    }
}

impl CacheScope {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}
