use std::fmt;

use opentelemetry_prometheus::PrometheusExporter;
use opentelemetry_sdk::error::OTelSdkError;
use prometheus::{Registry, TextEncoder};

use super::definition::{Definition, Kind};

pub(crate) struct Exposition(Registry);

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exposition")
    }
}

impl Exposition {
    pub(crate) fn new() -> Result<(Self, PrometheusExporter), OTelSdkError> {
        let registry = Registry::new();
        // Omits the scope, because all metrics have the same one. `target_info` names the resource.
        let reader = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()?;
        Ok((Self(registry), reader))
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Only an empty family fails, and the exporter creates none.
        let _ = TextEncoder::new().encode_utf8(&self.0.gather(), &mut text);
        text
    }
}

/// The media type of [`prometheus_text`].
pub const PROMETHEUS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns all metrics in Prometheus' text format, or an empty text if Prometheus is off. Takes as long as the
/// `observe_…` callbacks.
#[must_use]
pub fn prometheus_text() -> String {
    crate::state::exposition()
        .map(Exposition::text)
        .unwrap_or_default()
}

/// Returns all series names in [`prometheus_text`].
pub fn prometheus_names() -> impl Iterator<Item = String> {
    super::definitions()
        .flat_map(prometheus_names_of)
        .chain(std::iter::once("target_info".to_owned()))
}

/// Returns the series names of one metric.
#[must_use]
pub fn prometheus_names_of(definition: &Definition) -> Vec<String> {
    let family = prometheus_family(definition);
    match definition.kind {
        Kind::Histogram(_) => ["_bucket", "_sum", "_count"]
            .map(|suffix| format!("{family}{suffix}"))
            .to_vec(),
        _ => vec![family],
    }
}

/// Returns the family name of a metric.
#[must_use]
pub fn prometheus_family(definition: &Definition) -> String {
    let mut name = definition.name.replace('.', "_");
    name.push_str(match definition.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    });
    if definition.kind == Kind::Counter {
        name.push_str("_total");
    }
    name
}
