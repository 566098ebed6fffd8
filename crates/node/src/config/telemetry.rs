//! `[telemetry]`: what the process tells its operators of itself, and whom.

mod signals;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;
use shoal_telemetry::config as setup;

use super::{Node, Period, Secret};
pub use signals::{Logs, Metrics, ToolRatio, Traces};

settings! {
    /// What the process tells its operators of itself, and whom.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Telemetry {
        /// Whether anything of this section happens; logs on standard error do without it. Also by
        /// `OTEL_SDK_DISABLED`.
        pub enabled: bool = true,
        /// The collector that takes OTLP: `http://collector:4317`, or `https://` for TLS with the system's
        /// certificate authorities. Also by `OTEL_EXPORTER_OTLP_ENDPOINT`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub endpoint: Option<String> = None,
        /// How the collector is spoken to. Also by `OTEL_EXPORTER_OTLP_PROTOCOL`.
        pub protocol: setup::Protocol = setup::Protocol::Grpc,
        /// Headers that go to the collector with everything, such as `authorization`. They are secrets. Also by
        /// `OTEL_EXPORTER_OTLP_HEADERS`, which for these alone wins over the file.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(),
        /// What makes exports smaller, where the way to the collector is narrow. Also by
        /// `OTEL_EXPORTER_OTLP_COMPRESSION`.
        pub compression: setup::Compression = setup::Compression::None,
        /// How long one export may take. Also by `OTEL_EXPORTER_OTLP_TIMEOUT`, in milliseconds.
        pub timeout: Period = Period::seconds(10),
        /// What the deployment is called: the same for all its processes. Also by `OTEL_SERVICE_NAME`.
        pub service_name: String = setup::Telemetry::default().service_name,
        /// What else is true of everything that this process tells, such as
        /// `{ "deployment.environment.name" = "production" }`. Also by `OTEL_RESOURCE_ATTRIBUTES`.
        pub resource: BTreeMap<String, String> = BTreeMap::new(),
        /// Spans of calls, which go to the endpoint.
        pub traces: Traces = Traces::default(),
        /// Metrics.
        pub metrics: Metrics = Metrics::default(),
        /// Log lines, besides standard error; which ones is said by `logging.level`.
        pub logs: Logs = Logs::default(),
    }
}

impl Telemetry {
    /// What `shoal-telemetry` is set up with in a process that others know as `instance`.
    pub fn to_setup(&self, node: &Node, instance: &str) -> setup::Telemetry {
        if !self.enabled {
            return setup::Telemetry::off();
        }
        let otlp = self.endpoint.as_ref().map(|endpoint| setup::Otlp {
            endpoint: endpoint.clone(),
            protocol: self.protocol,
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), setup::Secret::new(value.expose())))
                .collect(),
            compression: self.compression,
            timeout: self.timeout.get(),
        });
        setup::Telemetry {
            service_name: self.service_name.clone(),
            service_instance_id: instance.to_owned(),
            service_version: env!("CARGO_PKG_VERSION").to_owned(),
            resource: self.resource(node),
            traces: self.traces.to_setup(otlp.is_some()),
            metrics: self.metrics.to_setup(),
            logs: self.logs.to_setup(),
            otlp,
        }
    }

    /// The roles, and what the operator adds; what stands in a setting of its own is left to that.
    fn resource(&self, node: &Node) -> Vec<(String, String)> {
        const OWN: [&str; 4] = [
            "service.name",
            "service.instance.id",
            "service.version",
            ROLES,
        ];
        const ROLES: &str = "shoal.roles";
        let roles: Vec<&str> = node.roles.iter().map(|role| role.as_str()).collect();
        let added = self
            .resource
            .iter()
            .filter(|(key, _)| !OWN.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()));
        std::iter::once((ROLES.to_owned(), roles.join(",")))
            .chain(added)
            .collect()
    }

    /// What is wrong with these settings: the one to change, dotted, and why.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn check(&self, node: &Node) -> Result<(), (String, String)> {
        self.to_setup(node, "").check().map_err(|invalid| {
            let setting = match invalid.setting {
                "traces.sampling.ratio" => "traces.ratio",
                "traces.sampling.tools" => "traces.tools",
                "logs.repeats.interval" => "logs.repeats_per",
                other => other.strip_prefix("otlp.").unwrap_or(other),
            };
            let problem = invalid.problem.replace("otlp.", "telemetry.");
            (format!("telemetry.{setting}"), problem)
        })
    }
}
