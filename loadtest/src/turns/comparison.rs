use std::fmt;

use serde::Serialize;

use super::{Bar, Bench, Row, verdict};
use crate::outcome::{Outcome, Verdict};
use crate::scenario::Finished;

const QUIET_CORES: f64 = 0.1;

/// A column's title, and its text for a row.
pub(crate) type Column = (&'static str, fn(&Row) -> String);

/// The result of cases that were measured in turns.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    sessions: usize,
    rounds: usize,
    pinned: bool,
    rows: Vec<Row>,
    left_out: Vec<String>,
    #[serde(skip)]
    columns: &'static [Column],
    #[serde(skip)]
    placed: &'static str,
}

impl Comparison {
    pub(crate) fn of(
        scenario: &str,
        bench: &Bench,
        (rows, left_out): (Vec<Row>, Vec<String>),
        columns: &'static [Column],
        bars: &[(&str, Bar)],
    ) -> Self {
        let Bench {
            sessions, rounds, ..
        } = *bench;
        let mut outcome = Outcome::begin(
            scenario,
            format!("echo of 32 bytes over {sessions} sessions"),
        );
        outcome.seconds = bench.time.as_secs_f64();
        for row in &rows {
            row.figures(&mut outcome);
            row.violations(&mut outcome);
        }
        outcome.verdicts = verdict::verdicts(&rows, bars);
        Self {
            outcome,
            sessions,
            rounds,
            pinned: bench.cores.is_some(),
            rows,
            left_out,
            columns,
            placed: match bench.cores {
                Some(cores) if cores.collector != cores.generator => {
                    "server, generator and collector on a core each"
                }
                Some(_) => "server and generator on a core each",
                None => "not pinned",
            },
        }
    }

    /// The commands include those for leases and the list of nodes.
    fn write_redis(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let Some(redis) = &row.redis else { continue };
            let all: u64 = redis.commands.values().sum();
            let by_name = redis.commands.iter();
            let by_name: Vec<String> = by_name.map(|(it, count)| format!("{it} {count}")).collect();
            writeln!(
                out,
                "Redis, {}: {:.2} µs of CPU a call, {all} commands for {} calls ({:.4} a call): {}",
                row.label,
                redis.cpu_us_per_call,
                row.calls,
                all as f64 / row.calls.max(1) as f64,
                by_name.join(", ")
            )?;
        }
        Ok(())
    }
}

impl Finished for Comparison {
    fn is_correct(&self) -> bool {
        self.outcome.is_correct()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "echo of 32 bytes, {} sessions, {} s a case, median of {} rounds, {}\n",
            self.sessions, self.outcome.seconds, self.rounds, self.placed
        )?;
        let cells = |row: &Row| self.columns.iter().map(|(_, text)| text(row)).collect();
        let titles: Vec<&str> = self.columns.iter().map(|(title, _)| *title).collect();
        write_table(
            out,
            &titles,
            &self.rows.iter().map(cells).collect::<Vec<_>>(),
        )?;
        self.write_redis(out)?;
        let other_cores = self.rows.iter().map(|row| row.other_cores);
        let most = other_cores.fold(0.0, f64::max);
        if most > QUIET_CORES {
            writeln!(
                out,
                "NOT QUIET: other work took up to {most:.2} cores; measure again on a quiet machine"
            )?;
        }
        for row in &self.rows {
            // A run waits for calls in flight.
            if row.seconds > self.outcome.seconds * 1.1 + 0.1 {
                writeln!(
                    out,
                    "measured for longer, being slow: {}, up to {:.1} s for {} calls in all rounds",
                    row.label, row.seconds, row.calls
                )?;
            }
        }
        for line in &self.left_out {
            writeln!(out, "left out: {line}")?;
        }
        for row in &self.rows {
            for example in &row.examples {
                writeln!(out, "{}: {example}", row.label)?;
            }
        }
        let verdicts: Vec<String> = self
            .outcome
            .verdicts
            .iter()
            .map(Verdict::to_string)
            .collect();
        match verdicts.is_empty() {
            true => write!(out, "no verdict"),
            false => write!(out, "{}", verdicts.join("\n")),
        }
    }
}

/// Writes a table in Markdown, with an empty line below.
pub(crate) fn write_table(
    out: &mut fmt::Formatter<'_>,
    titles: &[&str],
    rows: &[Vec<String>],
) -> fmt::Result {
    let titles: Vec<String> = titles.iter().map(|title| (*title).to_owned()).collect();
    let all = || std::iter::once(&titles).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max();
    let widths = (0..titles.len()).map(|column| width(column).unwrap_or(0));
    let widths: Vec<usize> = widths.collect();
    for (number, row) in all().enumerate() {
        if number == 1 {
            for width in &widths {
                write!(out, "|{:-<1$}", "", width + 2)?;
            }
            writeln!(out, "|")?;
        }
        for ((cell, &width), title) in row.iter().zip(&widths).zip(&titles) {
            match title.as_str() {
                "era" | "server" | "case" => write!(out, "| {cell:<width$} ")?,
                _ => write!(out, "| {cell:>width$} ")?,
            }
        }
        writeln!(out, "|")?;
    }
    writeln!(out)
}
