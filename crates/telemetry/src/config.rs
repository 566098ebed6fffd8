//! What is collected, and where it goes: plain values which the node's configuration fills.
//!
//! Nothing here reads the environment; [`Telemetry::check`] says what is wrong with a value before anything starts.

use std::time::Duration;

mod check;

pub use check::Invalid;

/// Everything about traces, metrics and exported logs. The default collects metrics for Prometheus and nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// `service.name` of the resource.
    pub service_name: String,
    /// `service.instance.id` of the resource; unique for each process of the service.
    pub service_instance_id: String,
    /// `service.version` of the resource.
    pub service_version: String,
    /// Further resource attributes, such as `shoal.node` and `shoal.roles`. Keys are unique.
    pub resource: Vec<(String, String)>,
    /// The collector that takes OTLP, if there is one.
    pub otlp: Option<Otlp>,
    /// Spans.
    pub traces: Traces,
    /// Metrics.
    pub metrics: Metrics,
    /// Log lines.
    pub logs: Logs,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            service_name: "shoal".to_owned(),
            service_instance_id: String::new(),
            service_version: env!("CARGO_PKG_VERSION").to_owned(),
            resource: Vec::new(),
            otlp: None,
            traces: Traces::default(),
            metrics: Metrics::default(),
            logs: Logs::default(),
        }
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Nothing.
    #[default]
    None,
    /// gzip.
    Gzip,
}

/// How OTLP travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// gRPC; collectors listen on port 4317.
    #[default]
    Grpc,
    /// Protobuf in HTTP requests; collectors listen on port 4318.
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

/// Which spans are kept, and how they wait for the collector.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// Whether spans are made at all. Needs [`Telemetry::otlp`].
    pub enabled: bool,
    /// Which traces are kept.
    pub sampling: Sampling,
    /// Spans that wait for export at most; beyond it they are dropped and counted.
    pub queue: usize,
    /// Spans in one export at most; not above `queue`.
    pub batch: usize,
    /// How long an incomplete batch waits.
    pub delay: Duration,
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            enabled: false,
            sampling: Sampling::default(),
            queue: 8_192,
            batch: 512,
            delay: Duration::from_secs(2),
        }
    }
}

/// The decision that is made once for each trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Share of the traces that are kept, 0 to 1, chosen by trace id.
    pub ratio: f64,
    /// Whether a client's own decision is followed.
    pub parent: ParentSampling,
    /// Shares for single tools, which replace `ratio`: a name, or a pattern with `*` for any characters. The first
    /// that matches counts.
    pub tools: Vec<(String, f64)>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            ratio: 0.1,
            parent: ParentSampling::default(),
            tools: Vec::new(),
        }
    }
}

/// What a client's `traceparent` means for the decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ParentSampling {
    /// What the client decided holds.
    #[default]
    Follow,
    /// The client's ids are kept, its decision is not: the ratios decide.
    Ignore,
}

/// Where metrics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Pushed to [`Telemetry::otlp`].
    pub otlp: bool,
    /// Kept for [`prometheus_text`](crate::metrics::prometheus_text).
    pub prometheus: bool,
    /// How often they are pushed.
    pub interval: Duration,
    /// Series of one metric at most; what comes after is added up under `otel.metric.overflow`.
    pub series: usize,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            otlp: false,
            prometheus: true,
            interval: Duration::from_secs(15),
            series: 2_000,
        }
    }
}

/// What happens to log lines besides being written to standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// Also sent to [`Telemetry::otlp`].
    pub otlp: bool,
    /// Limit of lines that repeat, for standard error and OTLP alike; `None` lets all pass.
    pub repeats: Option<Repeats>,
    /// Lines that wait for export at most; beyond it they are dropped and counted.
    pub queue: usize,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            otlp: false,
            repeats: Some(Repeats::default()),
            queue: 4_096,
        }
    }
}

/// When a line counts as repeated too often: same place in the code, same message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Lines that pass in an interval.
    pub limit: u32,
    /// The interval, after which one line says how many were suppressed.
    pub interval: Duration,
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            limit: 100,
            interval: Duration::from_secs(10),
        }
    }
}
