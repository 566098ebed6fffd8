//! The section `[telemetry]` of the configuration. This module does not read the environment.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use shoal_ports::Secret;
use shoal_ports::{Period, settings};

mod check;

pub use check::Invalid;

settings! {
    /// Traces, metrics and logs for the operators' collector.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Telemetry {
        /// Turns telemetry on. Without telemetry, only the log remains. (`OTEL_SDK_DISABLED`)
        pub enabled: bool = true,
        /// URL of your OTLP collector, such as `http://collector:4317`. `https://` trusts the system's authorities.
        /// (`OTEL_EXPORTER_OTLP_ENDPOINT`)
        #[serde(skip_serializing_if = "Option::is_none")]
        pub endpoint: Option<String> = None,
        /// OTLP protocol. (`OTEL_EXPORTER_OTLP_PROTOCOL`)
        pub protocol: Protocol = Protocol::Grpc,
        /// Secret headers of exports, such as `authorization`. (`OTEL_EXPORTER_OTLP_HEADERS`)
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(),
        /// Compression of exports. (`OTEL_EXPORTER_OTLP_COMPRESSION`)
        pub compression: Compression = Compression::None,
        /// Time limit of an export. (`OTEL_EXPORTER_OTLP_TIMEOUT`, in milliseconds)
        pub timeout: Period = Period::seconds(10),
        /// Service name of the whole deployment. (`OTEL_SERVICE_NAME`)
        pub service_name: String = "shoal".to_owned(),
        /// Resource attributes of all exports. (`OTEL_RESOURCE_ATTRIBUTES`)
        pub resource: BTreeMap<String, String> = BTreeMap::new(),
        /// Spans of calls.
        pub traces: Traces = Traces::default(),
        /// Export of metrics.
        pub metrics: Metrics = Metrics::default(),
        /// Export of the log's lines.
        pub logs: Logs = Logs::default(),
        /// Name of this process, unique within the service.
        #[serde(skip)]
        pub service_instance_id: String = String::new(),
        /// Version of the service. The default is the version of this crate.
        #[serde(skip)]
        pub service_version: String = env!("CARGO_PKG_VERSION").to_owned(),
    }
}

impl Telemetry {
    /// Returns settings that collect nothing: no threads, no allocation, one branch per call.
    #[must_use]
    pub fn off() -> Self {
        Self {
            enabled: false,
            ..Self::default()
        }
    }

    /// `None` if telemetry is off or has no collector.
    pub(crate) fn address(&self) -> Option<&str> {
        self.endpoint.as_deref().filter(|_| self.enabled)
    }

    pub(crate) fn has_traces(&self) -> bool {
        self.traces.enabled && self.address().is_some()
    }

    pub(crate) fn sends_metrics(&self) -> bool {
        self.metrics.otlp && self.address().is_some()
    }

    /// Whether a collector receives log records.
    #[must_use]
    pub fn sends_logs(&self) -> bool {
        self.logs.otlp && self.address().is_some()
    }

    pub(crate) fn has_prometheus(&self) -> bool {
        self.enabled && self.metrics.prometheus
    }

    pub(crate) fn limits_repeats(&self) -> bool {
        self.logs.repeats > 0
    }
}

/// Compression of exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "OtlpCompression")]
pub enum Compression {
    /// Not compressed.
    #[default]
    None,
    /// A tenth of the bytes, twice the processor time.
    Gzip,
}

/// Transport of OTLP exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "OtlpProtocol")]
pub enum Protocol {
    /// gRPC, usually port 4317.
    #[default]
    Grpc,
    /// Protobuf over HTTP, usually port 4318. Leave `/v1/traces` out of the endpoint.
    Http,
}

settings! {
    /// Spans of calls.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Traces {
        /// Records spans, if `telemetry.endpoint` is set.
        pub enabled: bool = true,
        /// Share of traces to record, 0 to 1, equal on all processes. (`OTEL_TRACES_SAMPLER`,
        /// `OTEL_TRACES_SAMPLER_ARG`)
        pub ratio: f64 = 0.1,
        /// Whether a client's `traceparent` decides on sampling. (`OTEL_TRACES_SAMPLER`)
        pub parent: ParentSampling = ParentSampling::Follow,
        /// Shares for single tools. The first match counts.
        pub tools: Vec<ToolRatio> = Vec::new(),
        /// Maximum spans that wait for export. Shoal drops and counts further spans.
        pub queue: usize = 8_192,
        /// Maximum spans in one export.
        #[serde(skip)]
        pub batch: usize = 512,
        /// How long an incomplete batch of spans waits for export.
        #[serde(skip)]
        pub delay: Duration = Duration::from_secs(2),
    }
}

/// Use of the sampling decision in a client's `traceparent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParentSampling {
    /// The client decides.
    #[default]
    Follow,
    /// Shoal decides by `ratio` and `tools`.
    Ignore,
}

/// One tool's share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ToolRatio {
    /// Name of the tool.
    pub tool: String,
    /// Share of the tool's traces to record, 0 to 1.
    pub ratio: f64,
}

settings! {
    /// Export of metrics.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Metrics {
        /// Serves `/metrics` on the admin port.
        pub prometheus: bool = true,
        /// Sends metrics to `telemetry.endpoint`.
        pub otlp: bool = false,
        /// How often Shoal sends metrics.
        pub interval: Period = Period::seconds(15),
        /// Maximum series of one metric. Shoal counts all further series in one.
        pub series: usize = 2_000,
    }
}

settings! {
    /// Export of the log's lines.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Logs {
        /// Sends lines to `telemetry.endpoint`.
        pub otlp: bool = false,
        /// Maximum equal lines in each `repeats_per`, also on standard error; 0 is unlimited. Of refused requests of one
        /// kind, each `repeats_per` has one line.
        pub repeats: u32 = 100,
        /// Time in which Shoal counts equal lines.
        pub repeats_per: Period = Period::seconds(10),
    }
}
