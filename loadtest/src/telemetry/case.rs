//! The cases: what telemetry does while calls are measured.

use serde::Serialize;

use crate::servers::collector::Conduct;
use crate::servers::spawned::Environment;

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Deployment {
    /// Shoal in one process.
    OneProcess,
    /// Shoal as an edge, a session node and a worker, with Redis.
    Cluster,
}

/// What a case is compared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Without telemetry: what every ratio refers to.
    Off,
    /// As operated: its CPU time is judged against [`Part::Off`].
    Sampled,
    /// As operated, but the collector is down: latency and throughput are judged against [`Part::Sampled`].
    Outage,
    /// Shown for orientation only.
    Shown,
}

/// Spans that are made and sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traces {
    /// The share of the traces that is kept.
    ratio: f64,
    pub(super) collector: Conduct,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    /// The row's name.
    pub(super) name: &'static str,
    pub(super) deployment: Deployment,
    pub(super) part: Part,
    /// Whether metrics are gathered.
    pub(super) metrics: bool,
    pub(super) traces: Option<Traces>,
}

/// All rows, in the order of their turns.
pub(super) const CASES: &[Case] = &[
    one("off", Part::Off, false, None),
    one("metrics", Part::Shown, true, None),
    one(
        "traces 10 %",
        Part::Sampled,
        true,
        traces(0.1, Conduct::Answers),
    ),
    one(
        "traces 100 %",
        Part::Shown,
        true,
        traces(1.0, Conduct::Answers),
    ),
    one(
        "10 %, collector stopped",
        Part::Outage,
        true,
        traces(0.1, Conduct::Refuses),
    ),
    one(
        "10 %, collector hangs",
        Part::Outage,
        true,
        traces(0.1, Conduct::Hangs),
    ),
    cluster("cluster off", Part::Off, false, None),
    cluster(
        "cluster traces 10 %",
        Part::Sampled,
        true,
        traces(0.1, Conduct::Answers),
    ),
];

impl Case {
    /// The settings of the server, with where its collector is.
    ///
    /// All are given, so that variables which OpenTelemetry knows and that happen to be set change nothing.
    pub(super) fn environment(&self, endpoint: Option<&str>) -> Environment {
        let enabled = self.metrics || self.traces.is_some();
        let mut settings = vec![
            ("SHOAL_TELEMETRY__ENABLED", enabled.to_string()),
            (
                "SHOAL_TELEMETRY__METRICS__PROMETHEUS",
                self.metrics.to_string(),
            ),
            ("SHOAL_TELEMETRY__METRICS__OTLP", "false".to_owned()),
            ("SHOAL_TELEMETRY__LOGS__OTLP", "false".to_owned()),
            (
                "SHOAL_TELEMETRY__TRACES__ENABLED",
                self.traces.is_some().to_string(),
            ),
        ];
        if let (Some(traces), Some(endpoint)) = (&self.traces, endpoint) {
            settings.extend([
                ("SHOAL_TELEMETRY__ENDPOINT", endpoint.to_owned()),
                ("SHOAL_TELEMETRY__PROTOCOL", "grpc".to_owned()),
                ("SHOAL_TELEMETRY__TRACES__RATIO", traces.ratio.to_string()),
            ]);
        }
        settings
    }
}

const fn traces(ratio: f64, collector: Conduct) -> Option<Traces> {
    Some(Traces { ratio, collector })
}

const fn one(name: &'static str, part: Part, metrics: bool, traces: Option<Traces>) -> Case {
    Case {
        name,
        deployment: Deployment::OneProcess,
        part,
        metrics,
        traces,
    }
}

const fn cluster(name: &'static str, part: Part, metrics: bool, traces: Option<Traces>) -> Case {
    Case {
        deployment: Deployment::Cluster,
        ..one(name, part, metrics, traces)
    }
}
