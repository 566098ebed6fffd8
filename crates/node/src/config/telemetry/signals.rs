//! `[telemetry.traces]`, `[telemetry.metrics]`, `[telemetry.logs]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_telemetry::config as setup;

use crate::config::Period;

/// Spans of calls, which go to the endpoint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Traces {
    /// Whether spans are made, where there is an endpoint.
    pub enabled: bool,
    /// Share of the traces that are kept, 0 to 1, chosen by trace id: give all processes the same. Also by
    /// `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`.
    pub ratio: f64,
    /// Whether a client's own decision, in its `traceparent`, holds. Also by `OTEL_TRACES_SAMPLER`.
    pub parent: ParentSampling,
    /// Shares for single tools, which replace `ratio`: `[{ tool = "pay_*", ratio = 1.0 }]`. The first that
    /// matches counts.
    pub tools: Vec<ToolRatio>,
    /// Spans that wait for the collector at most; beyond it they are dropped and counted.
    pub queue: usize,
}

/// What a client's `traceparent` says of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParentSampling {
    /// What the client decided holds.
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

/// Metrics.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Metrics {
    /// Whether `/metrics` of the admin port shows them to Prometheus.
    pub prometheus: bool,
    /// Whether they are sent to the endpoint as well.
    pub otlp: bool,
    /// How often they are sent.
    pub interval: Period,
    /// Series of one metric at most; what comes after is added up in one.
    pub series: usize,
}

/// Log lines, besides standard error; which ones is said by `logging.level`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Logs {
    /// Whether they are sent to the endpoint as well.
    pub otlp: bool,
    /// Lines with the same message from the same place that are logged in `repeats_per`, standard error
    /// included; the rest is counted and told in one line. 0 lets all pass.
    pub repeats: u32,
    /// The time for `repeats`.
    pub repeats_per: Period,
}

impl Default for Traces {
    fn default() -> Self {
        let traces = setup::Traces::default();
        Self {
            enabled: true,
            ratio: traces.sampling.ratio,
            parent: ParentSampling::Follow,
            tools: Vec::new(),
            queue: traces.queue,
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = setup::Metrics::default();
        Self {
            prometheus: metrics.prometheus,
            otlp: metrics.otlp,
            interval: metrics.interval.into(),
            series: metrics.series,
        }
    }
}

impl Default for Logs {
    fn default() -> Self {
        let repeats = setup::Repeats::default();
        Self {
            otlp: false,
            repeats: repeats.limit,
            repeats_per: repeats.interval.into(),
        }
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
                parent: match self.parent {
                    ParentSampling::Follow => setup::ParentSampling::Follow,
                    ParentSampling::Ignore => setup::ParentSampling::Ignore,
                },
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
