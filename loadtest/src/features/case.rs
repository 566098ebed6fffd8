//! A case: what is on while calls are measured.

use serde::Serialize;

use super::credentials::Credentials;
use super::files::Files;
use super::rules;
use crate::mcp::Mode;
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
    /// Without the features in question: what every ratio refers to.
    Off,
    /// With telemetry as operated: its CPU time is judged against [`Part::Off`].
    Sampled,
    /// With all that security adds: its CPU time is judged against [`Part::Off`].
    Secured,
    /// As operated, but the collector is down: latency and throughput are judged against [`Part::Sampled`].
    Outage,
    /// Shown, and not judged.
    Shown,
}

/// How callers are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Authentication {
    /// Not at all.
    Off,
    /// By fixed tokens, so many, one of which every request shows.
    Tokens(usize),
    /// By access tokens that an authorization server has signed.
    Jwt,
}

/// Spans that are made and sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traces {
    /// The share of the traces that is kept.
    pub(super) ratio: f64,
    pub(super) collector: Conduct,
}

/// What Shoal does besides passing calls on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Features {
    /// Whether arguments are checked against the tool's schema.
    pub(super) validation: bool,
    pub(super) authentication: Authentication,
    /// Whether rules say who may use what.
    pub(super) policy: bool,
    /// Whether quotas limit who asks for how much.
    pub(super) quotas: bool,
    /// Whether there is an audit trail, in a file.
    pub(super) audit: bool,
    /// Whether metrics are gathered.
    pub(super) metrics: bool,
    pub(super) traces: Option<Traces>,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    /// The row's name.
    pub(super) name: &'static str,
    /// The era that its clients speak.
    pub(super) mode: Mode,
    pub(super) deployment: Deployment,
    pub(super) part: Part,
    pub(super) features: Features,
}

impl Case {
    /// The settings of the server, with where its collector is, what its clients show, and its files.
    ///
    /// All are given, so that variables which OpenTelemetry knows and that happen to be set change nothing.
    pub(super) fn environment(
        &self,
        endpoint: Option<&str>,
        credentials: Option<&Credentials>,
        files: &Files,
    ) -> Environment {
        let Features {
            validation,
            authentication,
            policy,
            quotas: _,
            audit: _,
            metrics,
            traces,
        } = self.features;
        let enabled = metrics || traces.is_some();
        let mut settings = vec![
            ("SHOAL_CATALOG__VALIDATE_ARGUMENTS", validation.to_string()),
            ("SHOAL_TELEMETRY__ENABLED", enabled.to_string()),
            ("SHOAL_TELEMETRY__METRICS__PROMETHEUS", metrics.to_string()),
            ("SHOAL_TELEMETRY__METRICS__OTLP", "false".to_owned()),
            ("SHOAL_TELEMETRY__LOGS__OTLP", "false".to_owned()),
            (
                "SHOAL_TELEMETRY__TRACES__ENABLED",
                traces.is_some().to_string(),
            ),
        ];
        if let (Some(traces), Some(endpoint)) = (&traces, endpoint) {
            settings.extend([
                ("SHOAL_TELEMETRY__ENDPOINT", endpoint.to_owned()),
                ("SHOAL_TELEMETRY__PROTOCOL", "grpc".to_owned()),
                ("SHOAL_TELEMETRY__TRACES__RATIO", traces.ratio.to_string()),
            ]);
        }
        if let Some(credentials) = credentials {
            settings.extend(credentials.settings());
        }
        if policy {
            let claims = authentication == Authentication::Jwt;
            settings.push(("SHOAL_POLICY__RULES", rules::rules(claims)));
        }
        settings.extend(files.settings());
        settings
    }
}
