//! Turns OpenTelemetry's standard variables into settings. The file, Shoal's own variables and flags
//! override them.

use std::collections::BTreeMap;

use toml::Value;

use super::variable::Variable;

pub(super) const PREFIX: &str = "OTEL_";

const SAMPLER: &str = "OTEL_TRACES_SAMPLER";

/// Returns the settings, more specific ones later. Empty variables count as unset (OpenTelemetry specification), and
/// variables for single signals are ignored. An unusable value is passed on, so that the error names the variable.
pub(super) fn settings(variables: &BTreeMap<String, String>) -> Vec<Variable> {
    let text = |name: &str| Some(variables.get(name)?.trim()).filter(|text| !text.is_empty());
    let mut settings = Vec::new();
    let mut set = |name: &str, path: &[&str], value: Value| {
        let path = std::iter::once("telemetry").chain(path.iter().copied());
        settings.push(Variable {
            name: name.to_owned(),
            path: path.map(str::to_owned).collect(),
            value,
        });
    };
    let name = "OTEL_SDK_DISABLED";
    if text(name).is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        set(name, &["enabled"], false.into());
    }
    let name = "OTEL_RESOURCE_ATTRIBUTES";
    for (key, value) in text(name).into_iter().flat_map(pairs) {
        match key.as_str() {
            "service.name" => set(name, &["service_name"], value.into()),
            key => set(name, &["resource", key], value.into()),
        }
    }
    let name = "OTEL_EXPORTER_OTLP_HEADERS";
    for (key, value) in text(name).into_iter().flat_map(pairs) {
        set(name, &["headers", &key.to_ascii_lowercase()], value.into());
    }
    for (name, key) in [
        ("OTEL_SERVICE_NAME", "service_name"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "endpoint"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "compression"),
    ] {
        if let Some(text) = text(name) {
            set(name, &[key], text.into());
        }
    }
    let name = "OTEL_EXPORTER_OTLP_PROTOCOL";
    if let Some(protocol) = text(name) {
        let protocol = match protocol {
            "http/protobuf" => "http",
            other => other,
        };
        set(name, &["protocol"], protocol.into());
    }
    let name = "OTEL_EXPORTER_OTLP_TIMEOUT";
    if let Some(millis) = text(name) {
        set(name, &["timeout"], format!("{millis}ms").into());
    }
    let sampler = text(SAMPLER);
    for (key, value) in sampler.into_iter().flat_map(sampling) {
        set(SAMPLER, &["traces", key], value);
    }
    let name = "OTEL_TRACES_SAMPLER_ARG";
    // Other samplers ignore this argument.
    let takes_share = sampler.is_none_or(|sampler| sampler.ends_with("traceidratio"));
    if let Some(share) = text(name).filter(|_| takes_share) {
        let share = share.parse().map_or_else(|_| share.into(), Value::Float);
        set(name, &["traces", "ratio"], share);
    }
    settings
}

fn sampling(sampler: &str) -> Vec<(&'static str, Value)> {
    let (parent, own) = match sampler.strip_prefix("parentbased_") {
        Some(own) => ("follow", own),
        None => ("ignore", sampler),
    };
    let ratio = match own {
        "always_on" | "traceidratio" => 1.0,
        "always_off" => 0.0,
        // The error will name the unsupported sampler.
        _ => return vec![("parent", sampler.into())],
    };
    vec![("parent", parent.into()), ("ratio", ratio.into())]
}

/// `key=value,key=value` with percent-encoding.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let key = decoded(key.trim());
        (!key.is_empty()).then(|| (key, decoded(value.trim())))
    })
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}
