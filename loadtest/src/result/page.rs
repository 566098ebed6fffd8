mod plots;

use std::fmt::Write;

use plots::{percentiles, plots, tail};

use super::compare::Comparison;
use super::html::{self, escape, folded, table};
use super::number::{quantile, short, time_us};
use super::plot::Line;
use super::read::Named;
use crate::outcome::{Better, Outcome};

const HEADLINES: usize = 8;

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
                "<li>{}: {}</li>",
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
    // Readers look for figures that can be better or worse.
    let (judged, described): (Vec<_>, Vec<_>) = outcome
        .figures
        .iter()
        .partition(|figure| figure.better != Better::Neither);
    for (name, value) in headline_latencies(outcome) {
        let _ = write!(
            html,
            "<li><b>{}</b><span>{}</span></li>",
            escape(&value),
            escape(&name)
        );
    }
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

fn headline_latencies(outcome: &Outcome) -> Vec<(String, String)> {
    let Some(latency) = outcome.latencies.iter().find(|latency| latency.count > 0) else {
        return Vec::new();
    };
    let shown = latency
        .quantiles_us
        .iter()
        .filter(|(at, _)| [0.5, 0.99, 0.999].contains(at));
    shown
        .map(|(at, us)| (format!("{}, {}", latency.name, quantile(*at)), time_us(*us)))
        .collect()
}

#[cfg(test)]
mod tests;
