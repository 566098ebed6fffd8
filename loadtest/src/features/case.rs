use serde::Serialize;

use super::credentials::Credentials;
use super::files::Files;
use super::rules;
use crate::mcp::Mode;
use crate::servers::collector::Conduct;
use crate::servers::spawned::Environment;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Deployment {
    OneProcess,
    Cluster,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// No features: the reference for ratios of CPU time.
    Off,
    Sampled,
    Secured,
    /// The collector is down. Latency and throughput are compared with [`Part::Sampled`].
    Outage,
    Shown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Authentication {
    Off,
    /// Clients use one of this many tokens.
    Tokens(usize),
    Jwt,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Traces {
    pub(super) ratio: f64,
    pub(super) collector: Conduct,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Features {
    pub(super) validation: bool,
    pub(super) authentication: Authentication,
    pub(super) policy: bool,
    pub(super) quotas: bool,
    pub(super) audit: bool,
    pub(super) metrics: bool,
    pub(super) traces: Option<Traces>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) mode: Mode,
    pub(super) deployment: Deployment,
    pub(super) part: Part,
    pub(super) features: Features,
}

impl Case {
    /// The settings also override inherited OpenTelemetry variables.
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
