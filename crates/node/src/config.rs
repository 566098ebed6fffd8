//! The settings of a process, and where they come from: defaults, a file, the environment, flags.

mod calls;
mod catalog;
pub(crate) mod changes;
mod cluster;
mod cluster_tls;
mod environment;
mod error;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod layers;
mod listen_address;
mod node;
mod pools;
mod port_tls;
mod redis;
pub mod reference;
mod reload;
mod rules;
mod secret_source;
mod server;
mod session;
mod shutdown;
mod standard;
mod state_keys;
mod streams;
mod tasks;
mod warnings;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub use calls::Calls;
pub use catalog::{Catalog, ServerInfo};
pub use changes::Given;
pub use cluster::Cluster;
pub use cluster_tls::ClusterTls;
pub use environment::{CONFIG_FILE, Environment, TOKEN, Variable, value};
pub use error::Error;
use layers::Layers;
pub use layers::Source;
pub use listen_address::listen_address;
pub use node::{MEMORY, Node, Role};
pub use pools::{Backend, Pool};
pub use port_tls::{ClientCertificate, PortTls};
pub use redis::{Redis, StoreAddress};
pub use reload::Reload;
use schemars::JsonSchema;
pub use secret_source::SecretSource;
use serde::{Deserialize, Serialize};
use serde_path_to_error::Segment;
pub use server::{Operator, OperatorRole, Server};
pub use session::Session;
pub use shoal_auth::TokenHash;
pub use shoal_auth::config::{Auth, AuthMode, Token};
pub use shoal_outbound::OutboundConfig;
pub use shoal_policy::PolicyConfig;
pub use shoal_ports::{NodeLimits, Period, QuotaConfig, Secret};
use shoal_ports::{REDACTED, read_text, read_text_or_pipe};
use shoal_telemetry::audit::Audit;
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
pub use shutdown::Shutdown;
pub use state_keys::StateKeys;
pub use streams::Streams;
pub use tasks::Tasks;
use toml::{Table, Value};
pub use warnings::warnings;

/// Bytes of the configuration file at most.
pub(crate) const LONGEST_FILE: u64 = 16 << 20;

/// Everything that can be configured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Settings {
    /// Where clients and operators connect.
    pub server: Server,
    /// What this process is to its cluster.
    pub node: Node,
    /// How the processes of a cluster find and reach one another.
    pub cluster: Cluster,
    /// How the store in Redis is used.
    pub redis: Redis,
    /// Who may call.
    pub auth: Auth,
    /// Who may use what ([policy](policy.md)). Without a rule everybody may use everything; once there is one, what no rule
    /// allows is denied.
    pub policy: PolicyConfig,
    /// Where Shoal's own requests may go: to servers behind URLs, services with an OpenAPI document, and authorization servers.
    /// Hosts that the configuration names are reached. Hosts that others name must have public addresses
    /// ([more](backends.md#where-requests-may-go)).
    pub outbound: OutboundConfig,
    /// What the server tells of itself and of what it offers.
    pub catalog: Catalog,
    /// How much of everything there may be before the answer is "later".
    pub limits: NodeLimits,
    /// How much principals, addresses and all together may ask for ([quotas](quotas.md)). They are in force as soon as the file is
    /// read again.
    pub quotas: Vec<QuotaConfig>,
    /// The life of a legacy session.
    pub session: Session,
    /// SSE streams, and how long they can be resumed.
    pub streams: Streams,
    /// Calls of modern clients that become tasks.
    pub tasks: Tasks,
    /// How long calls may take, and how they are tried.
    pub calls: Calls,
    /// The secrets that encrypt what a request carries through its client (`requestState`).
    pub state_keys: StateKeys,
    /// What runs the tools: one table for each pool, under its name.
    pub pools: BTreeMap<String, Pool>,
    /// What is logged to standard error, and how.
    pub logging: Logging,
    /// What the process reports, and where to. Without an endpoint there are only the metrics at `/metrics` of the
    /// admin port.
    pub telemetry: Telemetry,
    /// The audit trail: who was let in, who was allowed what, and what became of each call ([audit](audit.md)). It is off
    /// without `file` and `otlp`.
    pub audit: Audit,
    /// Changes of the configuration file while the process works. SIGHUP has it read again. Quotas, and pools that were added,
    /// changed or removed, take effect at once; for all else the process has to be started again
    /// ([more](operations.md#changing-the-configuration)).
    pub reload: Reload,
    /// How long each step of an orderly end may take.
    pub shutdown: Shutdown,
}

impl Settings {
    /// What telemetry is set up with in a process that others know as `instance`.
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

/// A setting that a program makes, below all others: its path and its value.
pub type Preset = (Vec<String>, Value);

/// A setting made on the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The word, for messages.
    pub flag: &'static str,
    /// The setting's path.
    pub path: Vec<String>,
    /// Its value.
    pub value: Value,
}

/// Settings that have been read and checked.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Who made any of them.
    pub sources: Vec<String>,
    /// Whether there was a configuration file.
    pub from_file: bool,
    /// What they were made of.
    pub given: Given,
}

/// Reads and checks the settings: those of the program lie below all others, and `file` goes before the file that the
/// environment names.
///
/// # Errors
/// The first thing that is wrong, with who set it and what is allowed.
pub fn load(
    program: &[Preset],
    file: Option<&Path>,
    environment: &Environment,
    flags: &[Flag],
) -> Result<Loaded, Error> {
    load_by(read_text_or_pipe, program, file, environment, flags)
}

/// Reads and checks them once more, in a process that works: it waits for nobody, so the file must be a regular one by now.
///
/// # Errors
/// As for [`load`].
pub(crate) fn load_again(
    program: &[Preset],
    file: Option<&Path>,
    environment: &Environment,
    flags: &[Flag],
) -> Result<Loaded, Error> {
    load_by(read_text, program, file, environment, flags)
}

fn load_by(
    read_text: fn(&Path, u64) -> io::Result<String>,
    program: &[Preset],
    file: Option<&Path>,
    environment: &Environment,
    flags: &[Flag],
) -> Result<Loaded, Error> {
    let mut layers = Layers::default();
    for (path, value) in program {
        layers.set(path, value.clone(), &Source::Program);
    }
    for variable in &environment.standard {
        let source = Source::Variable(variable.name.clone());
        layers.set(&variable.path, variable.value.clone(), &source);
    }
    let file = file.or(environment.config_file.as_deref());
    if let Some(path) = file {
        let text = read_text(path, LONGEST_FILE).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        layers.apply(parse(path, &text)?, &Source::File(path.to_owned()));
    }
    for variable in &environment.variables {
        let source = Source::Variable(variable.name.clone());
        layers.set(&variable.path, variable.value.clone(), &source);
    }
    for flag in flags {
        let source = Source::Flag(flag.flag.to_owned());
        layers.set(&flag.path, flag.value.clone(), &source);
    }
    let settings = typed(&layers)?;
    rules::check(&settings, &layers)?;
    Ok(Loaded {
        settings,
        sources: layers.sources(),
        from_file: file.is_some(),
        given: Given(layers.merged().clone()),
    })
}

fn parse(path: &Path, text: &str) -> Result<Table, Error> {
    text.parse().map_err(|error: toml::de::Error| {
        // The error's own text quotes the line, which may hold a secret.
        let before = error.span().and_then(|span| text.get(..span.start));
        Error::Syntax {
            path: PathBuf::from(path),
            line: before.map_or(1, |before| before.matches('\n').count() + 1),
            reason: error.message().to_owned(),
        }
    })
}

fn typed(layers: &Layers) -> Result<Settings, Error> {
    let merged = Value::Table(layers.merged().clone());
    serde_path_to_error::deserialize(merged).map_err(|error| {
        let segments: Vec<&Segment> = error.path().iter().collect();
        let keys = keys(&segments);
        let reason = error.inner().message();
        Error::Setting {
            setting: error.path().to_string(),
            origin: layers.source_of(&keys),
            reason: if holds_secrets(&keys) {
                without_value(reason)
            } else {
                reason.to_owned()
            },
            help: reference::help(&keys),
        }
    })
}

/// Whether a value at this path may be a secret, or a secret put in the wrong place.
fn holds_secrets(keys: &[String]) -> bool {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    matches!(
        keys.as_slice(),
        ["state_keys", ..]
            | ["node", "store"]
            | ["server", "admin_token", ..]
            | ["auth", "tokens", ..]
            | ["telemetry", "endpoint" | "headers", ..]
            | ["pools", _, "backend", "stdio", "env", ..]
    )
}

/// What was expected, without what was found.
fn without_value(reason: &str) -> String {
    match reason.rfind("expected ") {
        Some(at) => reason[at..].to_owned(),
        None => "the value cannot be used".to_owned(),
    }
}

/// The keys down to the first array: arrays come from one source as a whole.
fn keys(segments: &[&Segment]) -> Vec<String> {
    segments
        .iter()
        .map_while(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { variant } => Some(variant.clone()),
            Segment::Seq { .. } | Segment::Unknown => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
