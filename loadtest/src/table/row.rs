//! From the reports of all rounds to rows of medians, and the bar that Shoal has to meet.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::case::{CASES, Part};
use crate::mcp::Mode;
use crate::report::{RunReport, median};

/// How much more CPU time than the floor a small echo call may cost.
const MOST_TIMES_FLOOR: f64 = 2.0;

/// One row: the medians over all rounds.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) case: &'static str,
    #[serde(skip)]
    part: Part,
    mode: Mode,
    cpu_us_per_call: f64,
    times_floor: f64,
    p50_us: f64,
    p99_us: f64,
    calls_per_s: f64,
    /// Of all of the server's processes, at the end of a round.
    rss_kib: f64,
    /// Of all that is neither server nor generator.
    pub(super) other_cores: f64,
    pub(super) wrong: u64,
    pub(super) failed: u64,
    pub(super) examples: Vec<String>,
    /// Commands that Redis carried out in all rounds, from opening the sessions to ending them.
    pub(super) redis_commands: BTreeMap<String, u64>,
    /// Calls answered in all rounds.
    pub(super) calls: u64,
    /// The CPU time a call of each round, to see how far they lie apart.
    cpu_us_per_call_rounds: Vec<f64>,
}

/// The rows of the cases that were measured; `reports` has the rounds of each of [`CASES`].
pub(super) fn rows(reports: &[Vec<RunReport>]) -> Vec<Row> {
    let mut rows: Vec<Row> = CASES
        .iter()
        .zip(reports)
        .filter(|(_, rounds)| !rounds.is_empty())
        .map(|(case, rounds)| {
            let of = |value: fn(&RunReport) -> f64| median(rounds.iter().map(value));
            Row {
                case: case.name,
                part: case.part,
                mode: case.mode,
                cpu_us_per_call: of(RunReport::cpu_us_per_call),
                times_floor: 0.0,
                p50_us: of(|report| report.latency.p50_us),
                p99_us: of(|report| report.latency.p99_us),
                calls_per_s: of(|report| report.calls_per_s),
                rss_kib: of(|report| {
                    report
                        .server
                        .as_ref()
                        .map_or(0.0, |server| server.rss_kib as f64)
                }),
                other_cores: of(|report| report.other_cores.unwrap_or(f64::NAN)),
                wrong: rounds.iter().map(|report| report.wrong).sum(),
                failed: rounds.iter().map(|report| report.failed).sum(),
                examples: rounds
                    .iter()
                    .flat_map(|report| report.examples.clone())
                    .collect(),
                redis_commands: super::redis::sum(rounds),
                calls: rounds.iter().map(|report| report.calls).sum(),
                cpu_us_per_call_rounds: rounds.iter().map(RunReport::cpu_us_per_call).collect(),
            }
        })
        .collect();
    let floor = rows
        .iter()
        .find(|row| row.part == Part::Floor)
        .map_or(f64::NAN, |row| row.cpu_us_per_call);
    for row in &mut rows {
        row.times_floor = row.cpu_us_per_call / floor;
    }
    rows
}

/// Writes `rows` as a table.
pub(super) fn write_rows(out: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    writeln!(
        out,
        "| {:<22} | {:>8} | {:>7} | {:>7} | {:>7} | {:>8} | {:>7} | {:>5} |",
        "server", "CPU µs", "× floor", "p50 µs", "p99 µs", "calls/s", "RSS MiB", "wrong"
    )?;
    writeln!(
        out,
        "|{:-<24}|{:->9}:|{:->8}:|{:->8}:|{:->8}:|{:->9}:|{:->8}:|{:->6}:|",
        "", "", "", "", "", "", "", ""
    )?;
    for row in rows {
        writeln!(
            out,
            "| {:<22} | {:>8.2} | {:>7.2} | {:>7.0} | {:>7.0} | {:>8.0} | {:>7.1} | {:>5} |",
            row.case,
            row.cpu_us_per_call,
            row.times_floor,
            row.p50_us,
            row.p99_us,
            row.calls_per_s,
            row.rss_kib / 1024.0,
            row.wrong + row.failed,
        )?;
    }
    writeln!(out)
}

/// Whether Shoal meets its bar, in each era.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Bar {
    /// True where every era of Shoal is within both limits.
    held: bool,
    eras: Vec<Era>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Era {
    mode: Mode,
    times_floor: f64,
    within_floor_limit: bool,
    /// The cheapest of the SDK's modes of this era that Shoal has too, in microseconds.
    peer_cpu_us: f64,
    below_peer: bool,
}

/// Judges Shoal's rows; `None` where there are none.
pub(super) fn bar(rows: &[Row]) -> Option<Bar> {
    let eras: Vec<Era> = rows
        .iter()
        .filter(|row| row.part == Part::Contender)
        .map(|row| {
            let peer_cpu_us = rows
                .iter()
                .filter(|peer| peer.part == Part::Peer && peer.mode == row.mode)
                .map(|peer| peer.cpu_us_per_call)
                .fold(f64::INFINITY, f64::min);
            Era {
                mode: row.mode,
                times_floor: row.times_floor,
                within_floor_limit: row.times_floor <= MOST_TIMES_FLOOR,
                peer_cpu_us,
                below_peer: row.cpu_us_per_call < peer_cpu_us,
            }
        })
        .collect();
    (!eras.is_empty()).then(|| Bar {
        held: eras
            .iter()
            .all(|era| era.within_floor_limit && era.below_peer),
        eras,
    })
}

impl fmt::Display for Bar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = if self.held { "held" } else { "NOT held" };
        write!(
            out,
            "bar (≤ {MOST_TIMES_FLOOR} × floor, below rmcp): {held}"
        )?;
        for era in &self.eras {
            let mode = era.mode.name();
            let against = if era.below_peer { "below" } else { "NOT below" };
            write!(
                out,
                "; {mode} {:.2} × floor, {against} rmcp's {:.2} µs",
                era.times_floor, era.peer_cpu_us
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
