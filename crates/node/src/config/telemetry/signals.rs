//! `[telemetry.traces]`, `[telemetry.metrics]`, `[telemetry.logs]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;
use shoal_telemetry::config as setup;

use crate::config::Period;

settings! {
    /// Spans of calls, which go to the endpoint.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Traces {
        /// Whether spans are made, where there is an endpoint.
        pub enabled: bool = true,
        /// Share of the traces that are kept, 0 to 1, chosen by trace id: give all processes the same. Also by
        /// `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`.
        pub ratio: f64 = setup::Traces::default().sampling.ratio,
        /// Whether a client's own decision, in its `traceparent`, holds. Also by `OTEL_TRACES_SAMPLER`.
        pub parent: setup::ParentSampling = setup::ParentSampling::Follow,
        /// Shares for single tools, which replace `ratio`: `[{ tool = "pay_*", ratio = 1.0 }]`. The first that
        /// matches counts.
        pub tools: Vec<ToolRatio> = Vec::new(),
        /// Spans that wait for the collector at most; beyond it they are dropped and counted.
        pub queue: usize = setup::Traces::default().queue,
    }
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
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Metrics {
        /// Whether `/metrics` of the admin port shows them to Prometheus.
        pub prometheus: bool = setup::Metrics::default().prometheus,
        /// Whether they are sent to the endpoint as well.
        pub otlp: bool = setup::Metrics::default().otlp,
        /// How often they are sent.
        pub interval: Period = setup::Metrics::default().interval.into(),
        /// Series of one metric at most; what comes after is added up in one.
        pub series: usize = setup::Metrics::default().series,
    }
}

settings! {
    /// Log lines, besides standard error; which ones is said by `logging.level`.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Logs {
        /// Whether they are sent to the endpoint as well.
        pub otlp: bool = false,
        /// Lines with the same message from the same place that are logged in `repeats_per`, standard error
        /// included; the rest is counted and told in one line. 0 lets all pass.
        pub repeats: u32 = setup::Repeats::default().limit,
        /// The time for `repeats`.
        pub repeats_per: Period = setup::Repeats::default().interval.into(),
    }
}

impl Traces {
    pub(super) fn to_setup(&self, has_endpoint: bool) -> setup::Traces {
        let default = setup::Traces::default();
        let tools = self.tools.iter();
        setup::Traces {
            enabled: self.enabled && has_endpoint,
            sampling: setup::Sampling {
                ratio: self.ratio,
                parent: self.parent,
                tools: tools.map(|it| (it.tool.clone(), it.ratio)).collect(),
            },
            queue: self.queue,
            batch: default.batch.min(self.queue),
            ..default
        }
    }
}

impl Metrics {
    pub(super) fn to_setup(&self) -> setup::Metrics {
        setup::Metrics {
            otlp: self.otlp,
            prometheus: self.prometheus,
            interval: self.interval.get(),
            series: self.series,
        }
    }
}

impl Logs {
    pub(super) fn to_setup(&self) -> setup::Logs {
        setup::Logs {
            otlp: self.otlp,
            repeats: (self.repeats > 0).then(|| setup::Repeats {
                limit: self.repeats,
                interval: self.repeats_per.get(),
            }),
            ..setup::Logs::default()
        }
    }
}
