use std::collections::BTreeMap;
use std::fmt::Write as _;

use shoal_telemetry::metrics::{
    AREAS, Attribute, Definition, Kind, Values, definitions, prometheus_family,
};
use shoal_telemetry::trace::{attributes, names};

const HEAD: &str = "\
# Metrics and spans

<!-- Written by the example `reference` of shoal-telemetry. -->

Query your Prometheus by the second name in each row. For histograms, append `_bucket`, `_count` or `_sum`. For example, this is the median time of your tool calls:

```promql
histogram_quantile(0.5, sum by (le) (rate(mcp_server_operation_duration_seconds_bucket{gen_ai_operation_name=\"execute_tool\"}[5m])))
```

The first name is OpenTelemetry's. In Prometheus, up-down counters are gauges, and resource attributes are on `target_info`. Names in bold are attributes. Their values
follow, or are [below](#attributes-of-metrics). [Telemetry](telemetry.md) shows how you collect metrics.

Shoal leaves out attributes that do not apply, and records unknown values as `_OTHER`. If a metric has more than `telemetry.metrics.series` series,
Shoal counts the others in one series with `otel_metric_overflow=\"true\"`.

*This node* is the process that reports the metric. The *event log* keeps streams' events in the store, so that clients can resume.
Other terms: [session, owner, epoch](concepts/session.md), [pool](concepts/pool.md), [hold, journal](concepts/hold.md), [drain](rollouts.md#what-a-drain-does).

## Metrics
";

/// Attributes whose many values have a better description than their list.
const DESCRIBED: &[(&str, &str)] = &[
    ("mcp.method.name", "methods of MCP, else `_OTHER`"),
    (
        "rpc.response.status_code",
        "[error codes](errors.md), else `_OTHER`",
    ),
];

const SHARED: &str = "
### Attributes of metrics

| attribute | values |
|---|---|
";

const BUCKETS: &str = "
### Buckets

| upper bounds in seconds | histograms |
|---|---|
";

const SPANS: &str = "
## Spans

[Traces](traces.md) shows how you record and read spans.

| span | kind | crate | meaning |
|---|---|---|---|
";

const ATTRIBUTES: &str = "
### Attributes of spans

Spans also have these attributes of metrics: ";

pub(crate) fn markdown() -> String {
    let mut page = String::from(HEAD);
    for (title, definitions) in AREAS {
        line(&mut page, format_args!("\n### {title}\n"));
        page.push_str("| metric | |\n|---|---|\n");
        for definition in *definitions {
            metric(&mut page, definition);
        }
    }
    page.push_str(SHARED);
    for attribute in shared() {
        line(
            &mut page,
            format_args!(
                "| `{}` | {} |",
                attribute.key,
                meanings(attribute).unwrap_or_else(|| values(attribute))
            ),
        );
    }
    page.push_str(BUCKETS);
    buckets(&mut page);
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
    let is_shared = |name: &str| shared().any(|shared| shared.key == name);
    let (of_metrics, own): (Vec<_>, Vec<_>) =
        (attributes::ALL.iter()).partition(|(name, _)| is_shared(name));
    let of_metrics: Vec<String> = (of_metrics.iter())
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    line(&mut page, format_args!("{}.\n", of_metrics.join(", ")));
    page.push_str("| attribute | meaning |\n|---|---|\n");
    for (name, says) in own {
        line(&mut page, format_args!("| `{name}` | {} |", says.trim()));
    }
    page
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{text}");
}

fn metric(page: &mut String, of: &Definition) {
    let attributes: Vec<String> = (of.attributes.iter())
        .map(|attribute| named(attribute, of))
        .collect();
    let attributes = match attributes.as_slice() {
        [] => String::new(),
        all => format!("<br>{}", all.join("<br>")),
    };
    line(
        page,
        format_args!(
            "| `{}`<br>`{}`<br>{} | {}{attributes} |",
            of.name,
            prometheus_family(of),
            of.kind.as_str(),
            of.description,
        ),
    );
}

/// The page explains equal values of several metrics once, at the first metric.
fn named(attribute: &Attribute, of: &Definition) -> String {
    let key = attribute.key;
    if shared().any(|shared| shared == attribute) {
        return format!("**`{key}`**");
    }
    let first = definitions().find(|definition| definition.attributes.contains(attribute));
    match (meanings(attribute), first) {
        (Some(meanings), Some(first)) if first.name == of.name => {
            format!("**`{key}`**<br>{meanings}")
        }
        (Some(_), Some(first)) => {
            format!("**`{key}`** as in `{}`", first.name)
        }
        _ => format!("**`{key}`** {}", values(attribute)),
    }
}

fn shared() -> impl Iterator<Item = &'static Attribute> {
    let mut by_key: BTreeMap<&str, Vec<&'static Attribute>> = BTreeMap::new();
    for attribute in definitions().flat_map(|definition| definition.attributes) {
        by_key.entry(attribute.key).or_default().push(attribute);
    }
    let several = by_key.into_values().filter(|all| all.len() > 1);
    several
        .filter(|all| all.iter().all(|attribute| *attribute == all[0]))
        .map(|all| all[0])
}

fn buckets(page: &mut String) {
    let mut lists: Vec<(&[f64], Vec<String>)> = Vec::new();
    for definition in definitions() {
        let Kind::Histogram(bounds) = definition.kind else {
            continue;
        };
        let name = format!("`{}`", definition.name);
        match lists.iter_mut().find(|(known, _)| *known == bounds) {
            Some((_, names)) => names.push(name),
            None => lists.push((bounds, vec![name])),
        }
    }
    for (bounds, names) in lists {
        let bounds: Vec<String> = bounds.iter().map(f64::to_string).collect();
        line(
            page,
            format_args!("| {} | {} |", bounds.join(", "), names.join(", ")),
        );
    }
}

fn values(attribute: &Attribute) -> String {
    if let Some((_, described)) = DESCRIBED.iter().find(|(key, _)| *key == attribute.key) {
        return (*described).to_owned();
    }
    match attribute.values {
        Values::OneOf { values, open, .. } => {
            let mut texts: Vec<String> = values.iter().map(|it| format!("`{it}`")).collect();
            if open {
                texts.push("`_OTHER`".to_owned());
            }
            texts.join(", ")
        }
        Values::Configured(which) => format!("{which}, else `_OTHER`"),
        Values::Code(which) => which.to_owned(),
    }
}

fn meanings(attribute: &Attribute) -> Option<String> {
    let Values::OneOf {
        values, meanings, ..
    } = attribute.values
    else {
        return None;
    };
    let lines: Vec<String> = (values.iter().zip(meanings))
        .map(|(value, meaning)| match meaning.trim() {
            same if says_only(same, value) => format!("`{value}`"),
            meaning => format!("`{value}`: {meaning}"),
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("<br>"))
}

/// Whether a value's meaning repeats the value.
fn says_only(meaning: &str, value: &str) -> bool {
    let words = meaning.trim_end_matches('.').to_lowercase();
    words.replace(' ', "_") == value.to_lowercase()
}
