//! The settings of a process.

pub(crate) mod changes;
pub(crate) mod cluster_tls;
mod deviations;
pub(crate) mod discovered;
mod discovery;
mod document;
mod dropped;
mod environment;
mod error;
pub(crate) mod files;
mod finding;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod layers;
mod load;
mod node;
mod parse;
mod pools;
mod port_tls;
pub mod reference;
mod reload;
mod rules;
mod server;
mod setting_path;
mod shutdown;
mod standard;
mod state_keys;
mod store_address;
mod variable;
mod warnings;

use std::collections::{BTreeMap, BTreeSet};

pub use changes::Given;
pub use discovery::Discovery;
pub use document::Position;
pub use environment::{CONFIG_FILE, Environment, TOKEN};
pub use error::{Error, Findings};
pub use finding::Finding;
pub use layers::Source;
pub use load::load;
pub(crate) use load::load_again;
pub use node::{MEMORY, Node, Role};
pub use pools::{Backend, Pool};
pub use port_tls::{ClientCertificate, PortTls};
pub use reload::Reload;
pub use rules::pools::LONGEST_POOL_NAME;
pub(crate) use rules::pools::check_name as check_pool_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use server::{Operator, OperatorRole, Server};
pub use shoal_auth::TokenHash;
pub use shoal_auth::config::{Auth, AuthMode, Token};
pub use shoal_outbound::OutboundConfig;
pub use shoal_policy::PolicyConfig;
use shoal_ports::REDACTED;
pub use shoal_ports::{
    CallSettings, CatalogSettings, ClusterSettings, ClusterTls, NodeLimits, Period, QuotaConfig,
    Secret, SecretSource, ServerInfo, SessionSettings, StreamSettings, TaskSettings,
    listen_address,
};
use shoal_store_redis::{RedisConfig, RedisSettings};
use shoal_telemetry::audit::Audit;
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
pub use shutdown::Shutdown;
pub use state_keys::StateKeys;
pub use store_address::StoreAddress;
use toml::Value;
pub use variable::{Variable, value};

pub(crate) const LONGEST_FILE: u64 = 16 << 20;

/// Everything that can be configured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Settings {
    /// Ports for clients and operators.
    pub server: Server,
    /// Name, roles, store and lease.
    pub node: Node,
    /// Connections between processes.
    pub cluster: ClusterSettings,
    /// Connections to the Redis of `node.store`.
    pub redis: RedisSettings,
    /// [Authentication](authentication.md) of callers.
    pub auth: Auth,
    /// Access rules ([policy](policy.md)). Without rules, callers may use everything. With rules, Shoal denies what no
    /// `allow` or `ask` rule matches.
    pub policy: PolicyConfig,
    /// Where Shoal sends requests ([more](backends.md#where-requests-may-go)). Hosts that your configuration does not
    /// name need public addresses.
    pub outbound: OutboundConfig,
    /// The server's description and lists.
    pub catalog: CatalogSettings,
    /// Limits of one node and, with authentication, of each principal at this node (`…_per_principal`). At a limit,
    /// Shoal refuses further requests until there is room.
    pub limits: NodeLimits,
    /// Quotas of principals, addresses or all callers ([quotas](quotas.md)).
    pub quotas: Vec<QuotaConfig>,
    /// Legacy sessions.
    pub session: SessionSettings,
    /// SSE streams and their resumption.
    pub streams: StreamSettings,
    /// [Tasks](tasks.md) of modern clients.
    pub tasks: TaskSettings,
    /// Time limits, retries and circuit breakers.
    pub calls: CallSettings,
    /// Encryption of `requestState`, which clients carry.
    pub state_keys: StateKeys,
    /// The servers that run your tools: one table for each pool, under its name.
    pub pools: BTreeMap<String, Pool>,
    /// Pools that Shoal finds itself, for example in [Kubernetes](kubernetes-servers.md).
    pub discovery: Discovery,
    /// Log on standard error.
    pub logging: Logging,
    /// Exports to your collector ([telemetry](telemetry.md)).
    pub telemetry: Telemetry,
    /// [Audit trail](audit.md). It needs `file` or `otlp`.
    pub audit: Audit,
    /// SIGHUP reloads the configuration file. Quotas and pools change at once; the rest needs a
    /// [restart](operations.md#changing-the-configuration).
    pub reload: Reload,
    /// Time limits of the [steps](rollouts.md#what-a-drain-does) of a shutdown: up to 64 s in all by default. Give your
    /// supervisor more (Kubernetes: `terminationGracePeriodSeconds`, by default 30 s).
    pub shutdown: Shutdown,
}

impl Settings {
    /// Returns the settings of the store in Redis.
    #[must_use]
    pub fn redis_store(&self) -> RedisConfig {
        RedisConfig {
            url: self.node.store.expose().to_owned(),
            redis: self.redis.clone(),
            streams: self.streams.clone(),
            ..RedisConfig::default()
        }
    }

    /// Returns the telemetry settings of this process, whose id is `instance`.
    #[must_use]
    pub fn telemetry_of(&self, instance: &str) -> Telemetry {
        let roles: Vec<&str> = self.node.roles.iter().map(|role| role.as_str()).collect();
        let mut telemetry = self.telemetry.clone();
        telemetry.service_instance_id = instance.to_owned();
        telemetry.service_version = env!("CARGO_PKG_VERSION").to_owned();
        (telemetry.resource).insert("shoal.roles".to_owned(), roles.join(","));
        telemetry
    }
}

/// The path and value of a program's own setting, which all other sources override.
pub type Preset = (Vec<String>, Value);

/// A setting from the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The flag's name, for messages.
    pub flag: &'static str,
    /// The setting's path.
    pub path: Vec<String>,
    /// The setting's value.
    pub value: Value,
}

/// Read and checked settings.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// The sources that set anything.
    pub sources: Vec<String>,
    /// Whether there was a configuration file.
    pub from_file: bool,
    /// The explicitly set values.
    pub given: Given,
    /// Warnings about valid settings.
    pub warnings: Vec<Finding>,
    /// The pools from `discovery.file`.
    pub discovered: BTreeSet<String>,
    /// Why other pools from `discovery.file` were left out.
    pub left_out: Vec<Finding>,
    /// Configured files and programs that this machine lacks. A process that needs one reports it itself.
    pub absent: Vec<Finding>,
}

/// Whether a value at this path may contain a secret, perhaps one that an operator put there by mistake.
fn holds_secrets(keys: &[String]) -> bool {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    matches!(
        keys.as_slice(),
        ["state_keys", ..]
            | ["node", "store"]
            | ["server", "admin_token" | "operators", ..]
            | ["auth", "tokens", ..]
            | ["telemetry", "endpoint" | "headers", ..]
            | ["pools", _, "backend", "stdio", "env", ..]
    )
}

#[cfg(test)]
mod tests;
