use std::fmt;

use serde::Serialize;

use super::case::Case;
use crate::mcp::Mode;
use crate::report::{RedisUsage, RunReport, median};

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) case: &'static str,
    mode: Mode,
    pub(super) cpu_us_per_call: f64,
    pub(super) times_floor: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) calls_per_s: f64,
    pub(super) rss_kib: f64,
    pub(super) other_cores: f64,
    pub(super) wrong: u64,
    pub(super) failed: u64,
    pub(super) examples: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) redis: Option<RedisUsage>,
    pub(super) calls: u64,
    pub(super) seconds: f64,
    cpu_us_per_call_rounds: Vec<f64>,
}

pub(super) fn rows(cases: &[Case], reports: &[Vec<RunReport>]) -> Vec<Row> {
    let cpu_us = |rounds: &[RunReport]| median(rounds.iter().map(RunReport::cpu_us_per_call));
    let floor_of = |case: &Case| {
        cases
            .iter()
            .zip(reports)
            .find(|(other, rounds)| {
                other.is_floor() && other.work == case.work && !rounds.is_empty()
            })
            .map_or(f64::NAN, |(_, rounds)| cpu_us(rounds))
    };
    cases
        .iter()
        .zip(reports)
        .filter(|(_, rounds)| !rounds.is_empty())
        .map(|(case, rounds)| {
            let of = |value: fn(&RunReport) -> f64| median(rounds.iter().map(value));
            Row {
                case: case.name,
                mode: case.mode,
                cpu_us_per_call: cpu_us(rounds),
                times_floor: cpu_us(rounds) / floor_of(case),
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
                redis: super::redis::of(rounds),
                calls: rounds.iter().map(|report| report.calls).sum(),
                seconds: rounds
                    .iter()
                    .map(|report| report.seconds)
                    .fold(0.0, f64::max),
                cpu_us_per_call_rounds: rounds.iter().map(RunReport::cpu_us_per_call).collect(),
            }
        })
        .collect()
}

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
