//! The section `[telemetry]` of the configuration.
//!
//! This module does not read the environment. [`Telemetry::check`] reports invalid values before anything starts.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use shoal_ports::Secret;
use shoal_ports::{Period, settings};

mod check;

pub use check::Invalid;

settings! {
    /// What the process tells its operators of itself, and whom.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Telemetry {
        /// Turns this section on. Logs on standard error do not depend on it. Also by `OTEL_SDK_DISABLED`.
        pub enabled: bool = true,
        /// The collector that takes OTLP: `http://collector:4317`, or `https://` for TLS with the system's
        /// certificate authorities. Also by `OTEL_EXPORTER_OTLP_ENDPOINT`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub endpoint: Option<String> = None,
        /// How the collector is spoken to. Also by `OTEL_EXPORTER_OTLP_PROTOCOL`.
        pub protocol: Protocol = Protocol::Grpc,
        /// Headers that go to the collector with everything, such as `authorization`. They are secrets. Also by
        /// `OTEL_EXPORTER_OTLP_HEADERS`.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(),
        /// What makes exports smaller, where the way to the collector is narrow. Also by
        /// `OTEL_EXPORTER_OTLP_COMPRESSION`.
        pub compression: Compression = Compression::None,
        /// How long one export may take. Also by `OTEL_EXPORTER_OTLP_TIMEOUT`, in milliseconds.
        pub timeout: Period = Period::seconds(10),
        /// What the deployment is called: the same for all its processes. Also by `OTEL_SERVICE_NAME`.
        pub service_name: String = "shoal".to_owned(),
        /// Resource attributes of everything that this process reports, such as `{ "deployment.environment.name" =
        /// "production" }`. Also by `OTEL_RESOURCE_ATTRIBUTES`.
        pub resource: BTreeMap<String, String> = BTreeMap::new(),
        /// Spans of calls, which go to the endpoint.
        pub traces: Traces = Traces::default(),
        /// Metrics.
        pub metrics: Metrics = Metrics::default(),
        /// Log lines, besides standard error; which ones is said by `logging.level`.
        pub logs: Logs = Logs::default(),
        /// What this process is called: unique for each of the service.
        #[serde(skip)]
        pub service_instance_id: String = String::new(),
        /// Its version.
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

    /// The address of the collector, unless telemetry is off.
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

/// What makes exports smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "OtlpCompression")]
pub enum Compression {
    /// Nothing.
    #[default]
    None,
    /// gzip: about a tenth of the bytes, for about twice the processor time of an export.
    Gzip,
}

/// How OTLP travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "OtlpProtocol")]
pub enum Protocol {
    /// gRPC, at port 4317 as a rule.
    #[default]
    Grpc,
    /// Protobuf in HTTP requests, at port 4318 as a rule; the endpoint is without `/v1/traces`.
    Http,
}

settings! {
    /// Spans of calls, which go to the endpoint.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Traces {
        /// Whether spans are made, where there is an endpoint.
        pub enabled: bool = true,
        /// Share of the traces that are kept, 0 to 1, chosen by trace id: give all processes the same. Also by
        /// `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`.
        pub ratio: f64 = 0.1,
        /// Whether a client's own decision, in its `traceparent`, holds. Also by `OTEL_TRACES_SAMPLER`.
        pub parent: ParentSampling = ParentSampling::Follow,
        /// Shares for single tools, which replace `ratio`: `[{ tool = "pay_*", ratio = 1.0 }]`. The first that
        /// matches counts.
        pub tools: Vec<ToolRatio> = Vec::new(),
        /// Spans that wait for the collector at most; beyond it they are dropped and counted.
        pub queue: usize = 8_192,
        /// Spans in one export at most.
        #[serde(skip)]
        pub batch: usize = 512,
        /// How long an incomplete batch waits.
        #[serde(skip)]
        pub delay: Duration = Duration::from_secs(2),
    }
}

/// What a client's `traceparent` says of sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParentSampling {
    /// What the client decided holds.
    #[default]
    Follow,
    /// The client's ids are kept, its decision is not: the shares decide.
    Ignore,
}

/// The share of one tool's traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ToolRatio {
    /// A tool's name, or a pattern in which `*` stands for any characters.
    pub tool: String,
    /// Share of its traces that are kept, 0 to 1.
    pub ratio: f64,
}

settings! {
    /// Metrics.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Metrics {
        /// Whether `/metrics` of the admin port shows them to Prometheus.
        pub prometheus: bool = true,
        /// Whether they are sent to the endpoint as well.
        pub otlp: bool = false,
        /// How often they are sent.
        pub interval: Period = Period::seconds(15),
        /// Series of one metric at most; what comes after is added up in one.
        pub series: usize = 2_000,
    }
}

settings! {
    /// Log lines, besides standard error; which ones is said by `logging.level`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Logs {
        /// Whether they are sent to the endpoint as well.
        pub otlp: bool = false,
        /// Lines with the same message from the same place that are logged in `repeats_per`, standard error
        /// included; the rest is counted and told in one line. Of lines that tell of a refused request, one of each kind is
        /// logged. 0 lets all pass.
        pub repeats: u32 = 100,
        /// The time for `repeats`.
        pub repeats_per: Period = Period::seconds(10),
    }
}
