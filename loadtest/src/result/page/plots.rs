use std::collections::BTreeMap;

use crate::outcome::{Distribution, Outcome, Series};
use crate::result::number::{quantile, short, time_us};
use crate::result::plot::{KINDS, Line, Plot};
use crate::result::scale::Scale;

/// From this ratio of values on, latencies get a logarithmic scale.
const FAR_APART: f64 = 20.0;

pub(super) fn plots(outcome: &Outcome) -> String {
    let mut html = String::from("<div class=\"plots\">\n");
    let lines = outcome.latencies.iter().filter(|latency| latency.count > 0);
    let lines: Vec<Line> = lines
        .map(|latency| tail(&format!("{} ({})", latency.name, latency.count), latency))
        .collect();
    let mut lines = lines.into_iter().peekable();
    while lines.peek().is_some() {
        let told_apart = lines.by_ref().take(KINDS).collect();
        html.push_str(&percentiles("Latency by percentile", told_apart));
    }
    let mut by_unit: BTreeMap<&str, Vec<&Series>> = BTreeMap::new();
    for series in outcome
        .series
        .iter()
        .filter(|series| !series.points.is_empty())
    {
        by_unit.entry(&series.unit).or_default().push(series);
    }
    for series in &outcome.series {
        if let Some(all) = by_unit.remove(series.unit.as_str()) {
            html.push_str(&over_time(&series.unit, &all, outcome));
        }
    }
    html.push_str("</div>\n");
    html
}

pub(super) fn tail(name: &str, latency: &Distribution) -> Line {
    Line {
        name: name.to_owned(),
        points: latency.quantiles_us.clone(),
    }
}

pub(super) fn percentiles(title: &str, lines: Vec<Line>) -> String {
    let values = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|(_, us)| *us));
    let y = Scale::log(values);
    let plot = Plot {
        title: title.to_owned(),
        x_name: "percentile; each nine is as wide as any other",
        y_name: "latency",
        x: Scale::Tail,
        y,
        x_text: quantile,
        y_text: time_us,
        lines,
        marks: &[],
    };
    plot.figure()
}

fn over_time(unit: &str, series: &[&Series], outcome: &Outcome) -> String {
    let values = || {
        series
            .iter()
            .flat_map(|series| series.points.iter().map(|(_, value)| *value))
    };
    let most = values().fold(0.0, f64::max);
    let least = values()
        .filter(|value| *value > 0.0)
        .fold(f64::INFINITY, f64::min);
    let is_time = matches!(unit, "µs" | "ms" | "s");
    let y = if is_time && most / least > FAR_APART {
        Scale::log(values())
    } else {
        Scale::linear(values())
    };
    let times = series
        .iter()
        .flat_map(|series| series.points.iter().map(|(at, _)| *at));
    let title = match series {
        [one] => one.name.clone(),
        _ => format!(
            "Over time, in {}",
            if unit.is_empty() { "numbers" } else { unit }
        ),
    };
    let lines = series.iter().map(|series| Line {
        name: series.name.clone(),
        points: series.points.clone(),
    });
    let plot = Plot {
        title,
        x_name: "seconds since the run began",
        y_name: unit,
        x: Scale::linear(times),
        y,
        x_text: short,
        y_text: short,
        lines: lines.collect(),
        marks: &outcome.marks,
    };
    plot.figure()
}
