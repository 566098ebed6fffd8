//! Metrics. Every metric is a [`Definition`] in the [catalogue](definitions) with a function in [`metrics`]. Attribute
//! values are enums or configured names. Other values are recorded as `_OTHER`, so that clients cannot create series.

mod actors;
mod area;
mod audit;
mod catalog;
mod configuration;
mod definition;
mod discovery;
mod first;
mod http;
mod instrument;
mod journal;
mod known;
mod labels;
mod mcp;
mod nodes;
mod observed;
mod own;
mod policy;
mod pools;
mod process;
mod prometheus;
mod routes;
mod rpc;
mod security;
mod series;
mod sessions;
mod store;
mod streams;
mod tasks;
mod tls;
mod workers;

pub use actors::{ActorKind, ActorMetrics};
pub use audit::{AuditMetrics, AuditSink};
pub use catalog::{CatalogMetrics, EntryKind};
pub use configuration::{ConfigurationMetrics, ReloadOutcome};
pub use definition::{Attribute, Definition, Kind, Values};
pub use discovery::{DiscoveryMetrics, DiscoveryRefusal, ReconcileOutcome};
pub use http::{Body, Direction, GivenUp, HttpMetrics, HttpRequest, RefusalReason};
pub use journal::{AttachOutcome, BeginOutcome, HoldOutcome, JournalMetrics};
pub use known::{Known, NameKind, OTHER};
pub use mcp::{Failure, HttpVersion, McpMetrics, Operation, Transport};
pub use nodes::{LeaseOutcome, NodeMetrics, NodeState, Role};
pub use observed::Registration;
pub use own::{DropReason, ExportOutcome, OwnMetrics, Signal};
pub use policy::{ApprovalOutcome, PolicyMetrics, PolicyOutcome};
pub use pools::{
    CircuitState, CountedOutcome, PoolMetrics, QueueOutcome, RetryReason, ShedReason, WorkerState,
};
pub use process::ProcessMetrics;
pub use prometheus::{
    PROMETHEUS_CONTENT_TYPE, prometheus_family, prometheus_names, prometheus_names_of,
    prometheus_text,
};
pub use routes::RouteMetrics;
pub use rpc::{LinkKind, RpcMetrics};
pub use security::{
    AuthMethod, AuthOutcome, AuthReason, AuthServerOutcome, AuthServerRequest, Quota,
    QuotaLeaseOutcome, QuotaOutcome, SecurityMetrics,
};
pub use sessions::{
    ClaimOutcome, ClaimReason, EndReason, HandOverOutcome, SessionMetrics, SessionState, TakeOver,
};
pub use store::{StoreMetrics, StoreOutcome};
pub use streams::{AppendOutcome, ResumeOutcome, StreamKind, StreamMetrics};
pub use tasks::{TaskMetrics, TaskOutcome, TaskStatus};
pub use tls::{CertificateValidity, HandshakeOutcome, TlsMetrics, TlsPort};
pub use workers::WorkerMetrics;

pub(crate) use instrument::Factory;
pub(crate) use prometheus::Exposition;

macro_rules! areas {
    ($($(#[$doc:meta])* $name:ident: $module:ident::$area:ident = $title:literal,)+) => {
        /// All instruments. Each method returns at once when metrics are off.
        #[derive(Debug)]
        pub struct Metrics {
            $($(#[$doc])* pub $name: $area,)+
            /// Names that may become attribute values.
            pub known: Known,
        }

        impl Metrics {
            pub(crate) fn new(factory: &Factory) -> Self {
                Self {
                    $($name: $area::new(factory),)+
                    known: Known::default(),
                }
            }
        }

        /// The sections of the reference page: a title, and the metrics.
        pub const AREAS: &[(&str, &[Definition])] = &[$(($title, $module::DEFINITIONS)),+];

        /// Returns every metric, in the order of the reference page.
        pub fn definitions() -> impl Iterator<Item = &'static Definition> {
            AREAS.iter().flat_map(|(_, definitions)| *definitions)
        }
    };
}

areas! {
    /// Requests and sessions, by the MCP conventions.
    mcp: mcp::McpMetrics = "MCP",
    /// HTTP and event streams.
    http: http::HttpMetrics = "HTTP",
    /// Legacy sessions and their owners.
    sessions: sessions::SessionMetrics = "Sessions",
    /// Streams of events and their log.
    streams: streams::StreamMetrics = "Streams",
    /// Running calls.
    journal: journal::JournalMetrics = "Journal",
    /// Calls of modern clients that became tasks.
    tasks: tasks::TaskMetrics = "Tasks",
    /// Pools, workers and queues.
    pools: pools::PoolMetrics = "Pools",
    /// The calls of this process's workers, as the workers count them.
    workers: workers::WorkerMetrics = "Workers",
    /// The offers of the pools.
    catalog: catalog::CatalogMetrics = "Catalog",
    /// Authentication and quotas.
    security: security::SecurityMetrics = "Authentication and quotas",
    /// Decisions of policy rules.
    policy: policy::PolicyMetrics = "Policy",
    /// The audit trail.
    audit: audit::AuditMetrics = "Audit",
    /// Redis.
    store: store::StoreMetrics = "Store",
    /// Actors.
    actors: actors::ActorMetrics = "Actors",
    /// Nodes and leases.
    nodes: nodes::NodeMetrics = "Nodes and leases",
    /// The configuration file.
    configuration: configuration::ConfigurationMetrics = "Configuration",
    /// Servers that are Kubernetes objects.
    discovery: discovery::DiscoveryMetrics = "Discovery",
    /// Routes to the owners of sessions.
    routes: routes::RouteMetrics = "Routes to owners",
    /// Links between processes.
    rpc: rpc::RpcMetrics = "Links between processes",
    /// The certificates of this process.
    tls: tls::TlsMetrics = "TLS",
    /// Telemetry itself.
    telemetry: own::OwnMetrics = "Telemetry",
    /// This process.
    process: process::ProcessMetrics = "Process",
}

/// Returns the instruments of this process. A reference taken before [`init`](crate::init) stays off.
#[must_use]
pub fn metrics() -> &'static Metrics {
    crate::state::metrics()
}

/// Whether metrics are recorded. Ask before gathering costly values.
#[must_use]
pub fn enabled() -> bool {
    crate::state::has_metrics()
}

#[cfg(test)]
mod tests;
