//! What is collected, and where it goes: plain values which the node's configuration fills.
//!
//! Nothing here reads the environment; [`Telemetry::check`] says what is wrong with a value before anything starts.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

mod check;

pub use check::Invalid;

settings! {
    /// Everything about traces, metrics and exported logs. The default collects metrics for Prometheus and nothing else.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Telemetry {
        /// `service.name` of the resource.
        pub service_name: String = "shoal".to_owned(),
        /// `service.instance.id` of the resource; unique for each process of the service.
        pub service_instance_id: String = String::new(),
        /// `service.version` of the resource.
        pub service_version: String = env!("CARGO_PKG_VERSION").to_owned(),
        /// Further resource attributes, such as `shoal.node` and `shoal.roles`. Keys are unique.
        pub resource: Vec<(String, String)> = Vec::new(),
        /// The collector that takes OTLP, if there is one.
        pub otlp: Option<Otlp> = None,
        /// Spans.
        pub traces: Traces = Traces::default(),
        /// Metrics.
        pub metrics: Metrics = Metrics::default(),
        /// Log lines.
        pub logs: Logs = Logs::default(),
    }
}

impl Telemetry {
    /// Nothing is collected: no threads, no allocation, one branch for each call.
    #[must_use]
    pub fn off() -> Self {
        Self {
            traces: Traces {
                enabled: false,
                ..Traces::default()
            },
            metrics: Metrics {
                otlp: false,
                prometheus: false,
                ..Metrics::default()
            },
            logs: Logs {
                otlp: false,
                repeats: None,
                ..Logs::default()
            },
            ..Self::default()
        }
    }
}

/// A collector that takes OTLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// Its base address: `http://host:4317`, or `https://…` for TLS with the system's certificate authorities.
    /// With [`Protocol::Http`], `/v1/traces`, `/v1/metrics` and `/v1/logs` are appended.
    pub endpoint: String,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Headers (metadata) sent along, such as `authorization`. Values are secrets: they appear in no message.
    pub headers: Vec<(String, Secret)>,
    /// How long one export may take, with everything that belongs to it.
    pub timeout: Duration,
    /// Whether exports are made smaller, which costs about as much as everything else about them.
    pub compression: Compression,
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

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `value`.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

settings! {
    /// Which spans are kept, and how they wait for the collector.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Traces {
        /// Whether spans are made at all. Needs [`Telemetry::otlp`].
        pub enabled: bool = false,
        /// Which traces are kept.
        pub sampling: Sampling = Sampling::default(),
        /// Spans that wait for export at most; beyond it they are dropped and counted.
        pub queue: usize = 8_192,
        /// Spans in one export at most; not above `queue`.
        pub batch: usize = 512,
        /// How long an incomplete batch waits.
        pub delay: Duration = Duration::from_secs(2),
    }
}

settings! {
    /// The decision that is made once for each trace.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Sampling {
        /// Share of the traces that are kept, 0 to 1, chosen by trace id.
        pub ratio: f64 = 0.1,
        /// Whether a client's own decision is followed.
        pub parent: ParentSampling = ParentSampling::default(),
        /// Shares for single tools, which replace `ratio`: a name, or a pattern with `*` for any characters. The first
        /// that matches counts.
        pub tools: Vec<(String, f64)> = Vec::new(),
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

settings! {
    /// Where metrics go.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Metrics {
        /// Pushed to [`Telemetry::otlp`].
        pub otlp: bool = false,
        /// Kept for [`prometheus_text`](crate::metrics::prometheus_text).
        pub prometheus: bool = true,
        /// How often they are pushed.
        pub interval: Duration = Duration::from_secs(15),
        /// Series of one metric at most; what comes after is added up under `otel.metric.overflow`.
        pub series: usize = 2_000,
    }
}

settings! {
    /// What happens to log lines besides being written to standard error.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Logs {
        /// Also sent to [`Telemetry::otlp`].
        pub otlp: bool = false,
        /// Limit of lines that repeat, for standard error and OTLP alike; `None` lets all pass.
        pub repeats: Option<Repeats> = Some(Repeats::default()),
        /// Lines that wait for export at most; beyond it they are dropped and counted.
        pub queue: usize = 4_096,
    }
}

settings! {
    /// When a line counts as repeated too often: same place in the code, same message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Repeats {
        /// Lines that pass in an interval.
        pub limit: u32 = 100,
        /// The interval, after which one line says how many were suppressed.
        pub interval: Duration = Duration::from_secs(10),
    }
}
