//! The pages: of results, each by itself, and of a comparison.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::compare::Comparison;
use super::html::{self, escape, folded, table};
use super::number::{quantile, short, time_us};
use super::plot::{Line, Plot};
use super::read::Named;
use super::scale::Scale;
use crate::outcome::{Better, Distribution, Outcome, Series};

/// How many figures stand out at the top; the others follow in a table.
const HEADLINES: usize = 8;

/// Latencies this many times apart are shown by factors.
const FAR_APART: f64 = 20.0;

/// The page of `results`.
pub(super) fn of_results(results: &[Named]) -> String {
    let mut body = String::new();
    if results.len() > 1 {
        body.push_str(&latencies_side_by_side(results));
    }
    for named in results {
        body.push_str(&section(named));
    }
    let title = match results {
        [one] => format!("Load test: {}", one.name),
        several => format!("Load tests: {} results", several.len()),
    };
    html::page(&title, &body)
}

/// The page of `comparison`, with the results that it is made of.
pub(super) fn of_comparison(comparison: &Comparison, results: &[Named]) -> String {
    let first = &comparison.names[0];
    let mut head = vec!["figure".to_owned(), first.clone()];
    for name in &comparison.names[1..] {
        head.extend([name.clone(), format!("over {first}")]);
    }
    let rows = comparison.rows.iter().map(|row| {
        let value = |index: usize| row.values[index].clone().unwrap_or_else(|| "–".to_owned());
        let mut cells = vec![row.name.clone(), value(0)];
        for (index, against) in row.against_first.iter().enumerate() {
            cells.push(value(index + 1));
            cells.push(against.map_or_else(String::new, |against| against.to_string()));
        }
        cells
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut body = table("Side by side", &head, &rows);
    if !comparison.differing.is_empty() {
        body.push_str("<h3>Not alike</h3><ul class=\"list\">");
        for (name, values) in &comparison.differing {
            let _ = write!(
                body,
                "<li>--{}: {}</li>",
                escape(name),
                escape(&values.join(" | "))
            );
        }
        body.push_str("</ul>\n");
    }
    body.push_str(&latencies_side_by_side(results));
    for named in results {
        body.push_str(&section(named));
    }
    html::page(
        &format!("Comparison: {}", comparison.names.join(", ")),
        &body,
    )
}

fn latencies_side_by_side(results: &[Named]) -> String {
    let firsts = results.iter().filter_map(|named| {
        let latency = named
            .outcome
            .latencies
            .iter()
            .find(|latency| latency.count > 0)?;
        Some(tail(&named.name, latency))
    });
    let lines: Vec<Line> = firsts.collect();
    if lines.len() < 2 {
        return String::new();
    }
    format!(
        "<div class=\"plots\">{}</div>\n",
        percentiles("First latency of each result, by percentile", lines)
    )
}

fn section(named: &Named) -> String {
    let Named { name, outcome } = named;
    let mut html = format!(
        "<section><h2>{}</h2>\n<p class=\"soft\">{}: {} ({} s)</p>\n",
        escape(name),
        escape(&outcome.scenario),
        escape(&outcome.title),
        short(outcome.seconds)
    );
    html.push_str(&judged(outcome));
    html.push_str(&figures(outcome));
    html.push_str(&plots(outcome));
    let parameters: Vec<Vec<String>> = outcome
        .parameters
        .iter()
        .map(|(name, value)| vec![format!("--{name}"), value.clone()])
        .collect();
    if !parameters.is_empty() {
        let head = ["option".to_owned(), "value".to_owned()];
        html.push_str(&folded(
            "What it was asked to do",
            &table("Options", &head, &parameters),
        ));
    }
    html.push_str("</section>\n");
    html
}

/// Violations, then verdicts.
fn judged(outcome: &Outcome) -> String {
    let mut html = String::from("<ul class=\"list\">");
    if outcome.violations.is_empty() {
        html.push_str(
            "<li class=\"good\"><b>All verified</b>: no answer was wrong, none was missing</li>",
        );
    }
    for violation in &outcome.violations {
        let _ = write!(
            html,
            "<li class=\"bad\"><b>Violation</b>: {}, {} times, first: {}</li>",
            escape(&violation.what),
            violation.count,
            escape(&violation.example)
        );
    }
    for verdict in &outcome.verdicts {
        let (class, word) = match verdict.held {
            Some(true) => ("good", "Held"),
            Some(false) => ("bad", "Not held"),
            None => ("", "Not decided"),
        };
        let _ = write!(
            html,
            "<li class=\"{class}\"><b>{word}</b>: {}</li>",
            escape(&verdict.what)
        );
    }
    html.push_str("</ul>\n");
    html
}

fn figures(outcome: &Outcome) -> String {
    let mut html = String::from("<ul class=\"cards\">");
    // What can be better or worse is what a reader looks for.
    let (judged, described): (Vec<_>, Vec<_>) = outcome
        .figures
        .iter()
        .partition(|figure| figure.better != Better::Neither);
    for figure in judged.iter().take(HEADLINES) {
        let _ = write!(
            html,
            "<li><b>{} {}</b><span>{}</span></li>",
            escape(&short(figure.value)),
            escape(&figure.unit),
            escape(&figure.name)
        );
    }
    html.push_str("</ul>\n");
    let rows = judged.iter().chain(&described).map(|figure| {
        let way = match figure.better {
            Better::Lower => "lower is better",
            Better::Higher => "higher is better",
            Better::Neither => "",
        };
        vec![
            figure.name.clone(),
            short(figure.value),
            figure.unit.clone(),
            way.to_owned(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let head = ["figure", "value", "unit", ""].map(str::to_owned);
    html.push_str(&folded("All figures", &table("Figures", &head, &rows)));
    html
}

fn plots(outcome: &Outcome) -> String {
    let mut html = String::from("<div class=\"plots\">\n");
    let lines = outcome.latencies.iter().filter(|latency| latency.count > 0);
    let lines: Vec<Line> = lines
        .map(|latency| tail(&format!("{} ({})", latency.name, latency.count), latency))
        .collect();
    if !lines.is_empty() {
        html.push_str(&percentiles("Latency by percentile", lines));
    }
    let mut by_unit: BTreeMap<&str, Vec<&Series>> = BTreeMap::new();
    for series in outcome
        .series
        .iter()
        .filter(|series| !series.points.is_empty())
    {
        by_unit.entry(&series.unit).or_default().push(series);
    }
    // In the order in which the scenario wrote them, not that of their units.
    for series in &outcome.series {
        if let Some(all) = by_unit.remove(series.unit.as_str()) {
            html.push_str(&over_time(&series.unit, &all, outcome));
        }
    }
    html.push_str("</div>\n");
    html
}

fn tail(name: &str, latency: &Distribution) -> Line {
    Line {
        name: name.to_owned(),
        points: latency.quantiles_us.clone(),
    }
}

fn percentiles(title: &str, lines: Vec<Line>) -> String {
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

#[cfg(test)]
mod tests;
