use std::fmt;

use serde::Serialize;

use super::case::{Case, Deployment, Part};
use super::turn::Turn;
use crate::mcp::Mode;
use crate::report::{RunReport, median};

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) case: &'static str,
    pub(super) mode: Mode,
    pub(super) deployment: Deployment,
    #[serde(skip)]
    pub(super) part: Part,
    pub(super) cpu_us_per_call: Measured,
    /// Ratios within one round, so that a slow minute affects both rows.
    pub(super) times_off: Option<Measured>,
    /// Median difference to the reference row of the same round.
    pub(super) more_us: Option<f64>,
    pub(super) p50_us: Measured,
    pub(super) p99_us: Measured,
    pub(super) calls_per_s: Measured,
    pub(super) other_cores: f64,
    spans_received: u64,
    spans_lost: Option<u64>,
    pub(super) wrong: u64,
    pub(super) failed: u64,
    pub(super) examples: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Measured {
    pub(super) median: f64,
    /// Spread of the rounds: (maximum − minimum) / median.
    pub(super) noise: f64,
    pub(super) rounds: Vec<f64>,
}

impl Measured {
    pub(super) fn of(rounds: Vec<f64>) -> Self {
        let median = median(rounds.iter().copied());
        let greatest = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        Self {
            median,
            noise: (greatest - least) / median,
            rounds,
        }
    }
}

impl Row {
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        (self.mode, self.deployment) == (other.mode, other.deployment)
    }
}

pub(super) fn rows(cases: &[Case], turns: &[Vec<Turn>]) -> Vec<Row> {
    let measured = cases
        .iter()
        .zip(turns)
        .filter(|(_, turns)| !turns.is_empty());
    let mut rows: Vec<Row> = measured
        .map(|(case, turns)| {
            let reports = || turns.iter().map(|turn| &turn.report);
            let of = |figure: fn(&RunReport) -> f64| Measured::of(reports().map(figure).collect());
            Row {
                case: case.name,
                mode: case.mode,
                deployment: case.deployment,
                part: case.part,
                cpu_us_per_call: of(RunReport::cpu_us_per_call),
                times_off: None,
                more_us: None,
                p50_us: of(|report| report.latency.p50_us),
                p99_us: of(|report| report.latency.p99_us),
                calls_per_s: of(|report| report.calls_per_s),
                other_cores: median(reports().filter_map(|report| report.other_cores)),
                spans_received: turns.iter().map(|turn| turn.spans.received).sum(),
                spans_lost: turns.iter().map(|turn| turn.spans.lost).sum(),
                wrong: reports().map(|report| report.wrong).sum(),
                failed: reports().map(|report| report.failed).sum(),
                examples: reports()
                    .flat_map(|report| report.examples.clone())
                    .collect(),
            }
        })
        .collect();
    let off: Vec<Row> = rows
        .iter()
        .filter(|row| row.part == Part::Off)
        .cloned()
        .collect();
    for row in &mut rows {
        let Some(off) = off.iter().find(|off| off.is_beside(row)) else {
            continue;
        };
        let pairs = || {
            let with = row.cpu_us_per_call.rounds.iter();
            with.zip(&off.cpu_us_per_call.rounds)
        };
        let times = pairs().map(|(with, without)| with / without).collect();
        let more_us = median(pairs().map(|(with, without)| with - without));
        row.times_off = Some(Measured::of(times));
        row.more_us = Some(more_us);
    }
    rows
}

/// `±` is the spread of the figure before it.
pub(super) fn write_rows(out: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    writeln!(
        out,
        "{:<6} {:<24} {:>11} {:>6} {:>6} {:>8} {:>8} {:>8} {:>6} {:>9} {:>6} {:>9} {:>9}",
        "era",
        "case",
        "CPU µs/call",
        "±",
        "× off",
        "+ µs",
        "p50 µs",
        "p99 µs",
        "±",
        "calls/s",
        "±",
        "spans",
        "lost"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<6} {:<24} {:>11.2} {:>6} {:>6} {:>8} {:>8.0} {:>8.0} {:>6} {:>9.0} {:>6} {:>9} {:>9}",
            row.mode.name(),
            row.case,
            row.cpu_us_per_call.median,
            percent(row.cpu_us_per_call.noise),
            row.times_off
                .as_ref()
                .map_or("-".to_owned(), |times| format!("{:.2}", times.median)),
            row.more_us
                .map_or("-".to_owned(), |more| format!("{more:.2}")),
            row.p50_us.median,
            row.p99_us.median,
            percent(row.p99_us.noise),
            row.calls_per_s.median,
            percent(row.calls_per_s.noise),
            row.spans_received,
            row.spans_lost
                .map_or("-".to_owned(), |lost| lost.to_string()),
        )?;
    }
    writeln!(out)
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

#[cfg(test)]
mod tests;
