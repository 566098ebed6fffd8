//! The settings of the dispatcher.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_policy::RulesInForce;
use shoal_ports::{Period, settings};

use crate::catalog::{MethodRules, PromptRules, ResourceRules, ToolRules};

settings! {
    /// Settings of the dispatcher; [`Config::default`] is a sensible server.
    #[derive(Clone, Debug)]
    pub struct Config {
        /// What the server calls itself. Default: the `serverInfo` of the pool if there is just one, else
        /// the name `shoal`.
        pub server_info: Option<ServerInfo> = None,
        /// Instructions for models, in place of the pools' own.
        pub instructions: Option<String> = None,
        /// Items on one page of a list.
        pub page_size: usize = 1000,
        /// How long a modern client may keep a list.
        pub list_ttl: Duration = Duration::from_secs(60),
        /// Who may share a list that was kept.
        pub list_cache_scope: CacheScope = CacheScope::Public,
        /// How long a modern client may keep a resource, where its backend says nothing.
        pub read_ttl: Duration = Duration::ZERO,
        /// Who may share a resource that was kept, where its backend says nothing.
        pub read_cache_scope: CacheScope = CacheScope::Private,
        /// How long a change of the lists is kept back from clients, while calls and lists
        /// follow it at once. Where there are several nodes, all of them should know the new list by the time that
        /// a client is told to fetch it.
        pub announce_after: Duration = Duration::ZERO,
        /// For how long after its start a dispatcher refuses what it does not know as safe to send again:
        /// workers of other processes may be on their way. By default not at all, for workers of this process alone.
        pub learn_for: Duration = Duration::ZERO,
        /// For how long after its start lists wait at most for pools that are on their way. By default not at all, for
        /// workers of this process alone.
        pub settle_within: Duration = Duration::ZERO,
        /// Whether arguments are checked against a tool's `inputSchema` before a worker sees them.
        pub validate_arguments: bool = true,
        /// How many steps the check of one call's arguments may take; a call that needs more is refused. A step is about
        /// one look at one value.
        pub validation_steps: u64 = 10_000_000,
        /// How many workers a call is offered to before it fails.
        pub start_attempts: usize = 3,
        /// How long a call whose worker is not connected waits for it to come back, where it
        /// can go on nowhere else.
        pub reconnect_wait: Duration = Duration::from_secs(5),
        /// How many failures in a row (a broken connection, an unknown outcome, a refusal that is not for lack
        /// of room) of one caller's calls of one tool open a worker's circuit for them: they are kept from it for a while.
        /// Calls that run at the same time and fail together are one failure. 0 means never.
        pub circuit_failures: u32 = 5,
        /// How long a circuit opens the first time; twice as long after each failed trial, and
        /// up to half of it is taken off at random.
        pub circuit_open: Duration = Duration::from_secs(1),
        /// How long a circuit opens at most.
        pub circuit_open_max: Duration = Duration::from_secs(30),
        /// How often one call of a legacy client may ask for input by `InputRequiredResult`.
        pub max_rounds: u32 = 16,
        /// How long a call waits for a modern client's answers; also how long a `requestState` is valid.
        pub parking_time: Duration = Duration::from_secs(600),
        /// How much the clocks of two nodes may differ. Within that, a `requestState` that one node sealed does not
        /// expire too early at the other.
        pub clock_skew: Duration = Duration::from_secs(300),
        /// How many calls may wait for answers on this node.
        pub max_parked: usize = 10_000,
        /// How many calls of one principal may wait for answers on this node.
        pub max_parked_per_principal: usize = 1_000,
        /// Who may use what; without any, everybody may use everything.
        pub policies: Option<Arc<RulesInForce>> = None,
        /// Whether to offer pools that `pools` does not name. With false, the status shows such a pool, and it takes no calls.
        pub unnamed_pools: bool = true,
        /// Settings of single pools, by name, to begin with. A pool that is not named here has the defaults.
        pub pools: BTreeMap<String, PoolConfig> = BTreeMap::new(),
    }
}

settings! {
    /// Settings of one pool.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PoolConfig {
        /// Put before the names of the pool's tools and prompts. A tool's name that becomes longer than 64 characters by it is
        /// shortened.
        pub prefix: String = String::new(),
        /// Which of its tools are offered, and how.
        pub tools: ToolRules = ToolRules::default(),
        /// Which of its prompts are offered, and how.
        pub prompts: PromptRules = PromptRules::default(),
        /// Which of its resources are offered.
        pub resources: ResourceRules = ResourceRules::default(),
        /// Which methods of its server's extensions are offered.
        pub methods: MethodRules = MethodRules::default(),
        /// Which of the pool's tool calls are journaled.
        pub durability: DurabilityPolicy = DurabilityPolicy::default(),
        /// Tools, by the backend's name, that are safe to repeat whatever else is said.
        pub repeatable: Vec<String> = Vec::new(),
        /// Tools, by the backend's name, that are never repeated whatever else is said.
        pub journaled: Vec<String> = Vec::new(),
        /// How long a call of the pool that must not run twice is held before it is journaled, where that is not as long as
        /// its session's node says.
        pub hold: Option<Duration> = None,
        /// How arguments are treated that do not match the schema of their tool.
        pub arguments: ArgumentPolicy = ArgumentPolicy::default(),
        /// Which calls go to the same worker where possible.
        pub affinity: Affinity = Affinity::default(),
        /// How long what the pool offers stays listed after its last worker has gone; its calls are
        /// refused as safe to send again meanwhile.
        pub linger: Duration = Duration::from_secs(60),
        /// Set for a pool that may have no worker for as long as nobody calls it.
        pub scale_to_zero: Option<ScaleToZero> = None,
    }
}

settings! {
    /// A pool that may have no worker while nobody calls it. Its tools, prompts and resources stay listed, and calls wait for a worker.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct ScaleToZero {
        /// How long a call waits for a worker before Shoal refuses it as safe to send again.
        pub wait: Period = Period::seconds(60),
        /// Maximum calls that wait for a worker at one node.
        pub calls: usize = 1000,
        /// For each principal: maximum calls that wait for a worker at one node.
        pub calls_per_principal: usize = 100,
    }
}

/// Which calls of a pool go to the same worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Affinity {
    /// Each call goes to the less busy of two workers.
    #[default]
    None,
    /// All calls go to one worker, for servers that keep state in their process. Other workers stand by.
    All,
    /// The calls of a legacy session go to one worker, and so do a principal's modern calls.
    Session,
    /// Those with the same value of the argument of this name; calls without it go anywhere.
    Key(String),
}

/// How Shoal treats arguments that do not match the schema of their tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Arguments")]
pub enum ArgumentPolicy {
    /// Shoal lets three mismatches through: a string for another type, a number for an `enum` of strings, an unknown
    /// member. Shoal refuses all others.
    #[default]
    Pass,
    /// Shoal reads such strings as JSON and removes unknown members, if the arguments then match; if not, as `pass`.
    Coerce,
    /// Shoal refuses every mismatch.
    Strict,
}

impl ArgumentPolicy {
    pub(crate) const fn forgives(self) -> bool {
        matches!(self, Self::Pass | Self::Coerce)
    }
}

/// Which tool calls are journaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Durability")]
pub enum DurabilityPolicy {
    /// Tools that have neither `readOnlyHint` nor `idempotentHint`.
    #[default]
    Auto,
    /// No tools: Shoal treats all as safe to repeat.
    Never,
    /// All tools.
    Always,
}

/// Sharing of a copy (`cacheScope`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Any caller may use the cached copy.
    Public,
    /// Only the same principal may use the cached copy.
    Private,
}

/// `Implementation` of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// The name for programs.
    pub name: String,
    /// The version.
    pub version: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the server is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PoolSettings {
    pools: BTreeMap<String, PoolConfig>,
    coerces: bool,
    /// Pools that the configuration no longer names. Their rules stay while they are offered, so
    /// that hidden items stay hidden.
    dropped: BTreeSet<String>,
    /// Whether pools that the configuration does not name take no calls.
    only_named: bool,
}

static DEFAULTS: LazyLock<PoolConfig> = LazyLock::new(PoolConfig::default);

impl Config {
    pub(crate) fn reconnect_wait(&self) -> Duration {
        self.reconnect_wait
    }
}

impl PoolSettings {
    pub(crate) fn new(pools: BTreeMap<String, PoolConfig>, only_named: bool) -> Self {
        let mut settings = Self {
            pools,
            only_named,
            ..Self::default()
        };
        settings.note();
        settings
    }

    fn note(&mut self) {
        let mut pools = self.pools.values();
        self.coerces = pools.any(|pool| pool.arguments == ArgumentPolicy::Coerce);
    }

    pub(crate) fn coerces(&self) -> bool {
        self.coerces
    }

    pub(crate) fn admits(&self, name: &str) -> bool {
        !self.only_named || self.pools.contains_key(name) && !self.is_dropped(name)
    }

    /// Returns how calls wait for a pool's worker. `None` if the pool may not scale to zero or is no longer
    /// named.
    pub(crate) fn scale_to_zero(&self, name: &str) -> Option<&ScaleToZero> {
        let settings = self.pools.get(name)?;
        (settings.scale_to_zero.as_ref()).filter(|_| !self.is_dropped(name))
    }

    pub(crate) fn may_be_vacant(&self) -> impl Iterator<Item = &String> {
        let names = self.pools.keys();
        names.filter(|name| self.scale_to_zero(name).is_some())
    }

    pub(crate) fn of(&self, name: &str) -> &PoolConfig {
        self.pools.get(name).unwrap_or(&DEFAULTS)
    }

    /// Replaces the settings of these pools. `None` means that the configuration no longer names the pool.
    pub(crate) fn change(&mut self, pools: BTreeMap<String, Option<PoolConfig>>) {
        for (name, settings) in pools {
            match settings {
                Some(settings) => {
                    self.dropped.remove(&name);
                    self.pools.insert(name, settings);
                }
                None if self.pools.contains_key(&name) => {
                    self.dropped.insert(name);
                }
                None => {}
            }
        }
        self.note();
    }

    pub(crate) fn dropped(&self) -> impl Iterator<Item = &String> {
        self.dropped.iter()
    }

    pub(crate) fn is_dropped(&self, name: &str) -> bool {
        self.dropped.contains(name)
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.dropped.remove(name);
        self.pools.remove(name);
        self.note();
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
