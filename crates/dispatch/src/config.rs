use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_policy::RulesInForce;
use shoal_ports::{CallSettings, CatalogSettings, ClusterSettings, Period, settings};

use crate::catalog::{MethodRules, PromptRules, ResourceRules, ToolRules};

settings! {
    /// Settings of the dispatcher. The defaults suit a server in one process.
    #[derive(Clone, Debug)]
    pub struct Config {
        /// How the server presents itself and its lists.
        pub catalog: CatalogSettings = CatalogSettings {
            announce_after: Period::ZERO,
            ..CatalogSettings::default()
        },
        /// Calls, retries and circuit breakers.
        pub calls: CallSettings = CallSettings::default(),
        /// The cluster.
        pub cluster: ClusterSettings = ClusterSettings::default(),
        /// Time after the start in which Shoal refuses unknown tools, prompts and resources as safe to send again,
        /// because workers of other processes may still join.
        pub learn_for: Duration = Duration::ZERO,
        /// Maximum time after the start for which lists wait for pools of other processes.
        pub settle_within: Duration = Duration::ZERO,
        /// Access rules. If unset, every caller may use everything.
        pub policies: Option<Arc<RulesInForce>> = None,
        /// Initial settings of pools, by name. Other pools have the defaults.
        pub pools: BTreeMap<String, PoolConfig> = BTreeMap::new(),
    }
}

settings! {
    /// The dispatcher's part of `[pools.<name>]`: the pool's tools, prompts and resources, and how Shoal calls them.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default)]
    pub struct PoolConfig {
        /// Prefix of tool and prompt names, to avoid clashes. Shoal shortens tool names over 64 characters.
        pub prefix: String = String::new(),
        /// Tools that the pool offers, by the backend's names. Edges and session nodes apply these settings.
        pub tools: ToolRules = ToolRules::default(),
        /// Prompts that the pool offers, by the backend's names.
        pub prompts: PromptRules = PromptRules::default(),
        /// Resources that the pool offers.
        pub resources: ResourceRules = ResourceRules::default(),
        /// Methods of extensions that the pool offers ([backends](backends.md#extensions)).
        pub methods: MethodRules = MethodRules::default(),
        /// Tool calls that Shoal journals, so that each runs once.
        pub durability: DurabilityPolicy = DurabilityPolicy::default(),
        /// Tools and extension methods, by the backend's names, that are safe to repeat despite `durability`.
        pub repeatable: Vec<String> = Vec::new(),
        /// Tools and extension methods, by the backend's names, that must not run twice, despite other settings.
        pub journaled: Vec<String> = Vec::new(),
        /// How long Shoal [holds](backends.md#the-hold) this pool's calls; by default `streams.hold`.
        pub hold: Option<Period> = None,
        /// How Shoal treats [arguments that do not match](backends.md#arguments-that-do-not-match) the tool's schema.
        pub arguments: ArgumentPolicy = ArgumentPolicy::default(),
        /// Calls that go to the same worker while it accepts calls. With `{ key = "argument" }`, these are calls with
        /// the same value of this argument.
        pub affinity: Affinity = Affinity::default(),
        /// How long the pool's tools stay listed without workers.
        pub linger: Period = Period::seconds(60),
        /// Lets the pool have no workers until a call comes. Its tools stay listed ([scaling to
        /// zero](scaling.md#scaling-to-zero)).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub scale_to_zero: Option<ScaleToZero> = None,
    }
}

settings! {
    /// A pool that may have no worker while nobody calls it. Its tools, prompts and resources stay listed, and calls wait for a worker.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct ScaleToZero {
        /// How long a call waits for a worker before Shoal refuses it with 50301.
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
    /// Each call goes to the less busy of two random workers.
    #[default]
    None,
    /// All calls, for servers with state in their process. Other workers stand by.
    All,
    /// Calls of a legacy session, or a principal's modern calls.
    Session,
    /// Calls with the same value of this argument go to one worker. Calls without the argument go to any worker.
    Key(String),
}

/// How Shoal treats arguments that do not match the schema of their tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Arguments")]
pub enum ArgumentPolicy {
    /// Passes on common mismatches, and refuses others.
    #[default]
    Pass,
    /// Corrects common mismatches. If the arguments still do not match, acts as `pass`.
    Coerce,
    /// Refuses every mismatch.
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
    /// Those of tools with neither `readOnlyHint` nor `idempotentHint`.
    #[default]
    Auto,
    /// None: Shoal treats all as safe to repeat.
    #[serde(rename = "never")]
    NoTool,
    /// All.
    #[serde(rename = "always")]
    AllTools,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PoolSettings {
    pools: BTreeMap<String, PoolConfig>,
    coerces: bool,
    /// Pools that the configuration no longer names. Their rules still hide items.
    dropped: BTreeSet<String>,
    /// Whether pools that the configuration does not name get no calls.
    only_named: bool,
}

static DEFAULTS: LazyLock<PoolConfig> = LazyLock::new(PoolConfig::default);

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

    /// `None` if the pool may not scale to zero or is no longer named.
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

    /// Replaces pools' settings. `None` means that the configuration no longer names the pool.
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
