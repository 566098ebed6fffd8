//! Writes the reference page, `docs/metrics.md`.

use std::fmt::Write as _;

use shoal_telemetry::metrics::{
    Attribute, Definition, Kind, Values, definitions, prometheus_family,
};
use shoal_telemetry::trace::{attributes, names};

const HEAD: &str = "\
# Metrics and spans

Written by `cargo run -q -p shoal-telemetry --example reference > docs/metrics.md`; a test compares it with the code.
";

const METRICS: &str = "
## Metrics

Names are those of OpenTelemetry. Prometheus sees dots as underscores, the unit appended and counters with `_total`:
the second line of each entry says what to query. Up-down counters and gauges are Prometheus gauges. Resource
attributes are on `target_info`.

Attribute values are bounded: what a client can invent is recorded as `_OTHER`, and beyond the configured number of
series of one metric everything is added up in one series with `otel_metric_overflow=\"true\"`. An attribute that does
not apply to a measurement is left out.
";

const SPANS: &str = "
## Spans

A client's `traceparent` and `tracestate` become the parent, from the request's `_meta` before the HTTP headers. What
is part of one trace is kept or not kept as a whole.

| span | kind | made in | covers |
|---|---|---|---|
";

const ATTRIBUTES: &str = "
### Attributes

| attribute | says |
|---|---|
";

pub(crate) fn markdown() -> String {
    let mut page = String::from(HEAD);
    page.push_str(METRICS);
    for definition in definitions() {
        metric(&mut page, definition);
    }
    page.push_str(SPANS);
    for span in names::ALL {
        line(
            &mut page,
            format_args!(
                "| `{}` | {} | {} | {} |",
                span.name, span.kind, span.made, span.covers
            ),
        );
    }
    page.push_str(ATTRIBUTES);
    for (name, says) in attributes::ALL {
        line(&mut page, format_args!("| `{name}` | {} |", says.trim()));
    }
    page
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "{text}");
}

fn metric(page: &mut String, of: &Definition) {
    line(page, format_args!("\n### `{}`\n", of.name));
    line(
        page,
        format_args!(
            "{} {}, unit `{}`.\n\nPrometheus: `{}`.",
            of.description,
            capital(of.kind.as_str()),
            of.unit,
            prometheus_family(of)
        ),
    );
    if let Kind::Histogram(bounds) = of.kind {
        let bounds: Vec<String> = bounds.iter().map(f64::to_string).collect();
        line(page, format_args!("Buckets: {}.", bounds.join(", ")));
    }
    if !of.attributes.is_empty() {
        page.push_str("\n| attribute | values |\n|---|---|\n");
        for attribute in of.attributes {
            line(
                page,
                format_args!("| `{}` | {} |", attribute.key, values(attribute)),
            );
        }
    }
}

fn values(attribute: &Attribute) -> String {
    match attribute.values {
        Values::OneOf { values, open } => {
            let mut texts: Vec<String> = values.iter().map(|it| format!("`{it}`")).collect();
            if open {
                texts.push("`_OTHER`".to_owned());
            }
            texts.join(", ")
        }
        Values::Configured(which) => format!("{which}; anything else is `_OTHER`"),
        Values::Code(which) => which.to_owned(),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
