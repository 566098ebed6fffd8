//! Floor, peer and Shoal in one table of the same run.
//!
//! Every case of every round gets a server process of its own, so that no case inherits another's
//! memory; the cases take turns, so that a slow minute of the machine falls on all of them.

mod bar;
mod case;
mod chosen;
mod outcome;
mod redis;
mod row;
mod turn;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::affinity::Cores;
use crate::outcome::{Outcome, Verdict};
use crate::report::{self, RunReport};
pub(crate) use chosen::{Chosen, installed};
use row::Row;
use turn::Turn;

/// What to tabulate, and how.
#[derive(Debug)]
pub(crate) struct Options {
    /// The Shoal binary; without one its rows are left out.
    pub(crate) shoal: Option<PathBuf>,
    /// Sessions that call at the same time.
    pub(crate) sessions: usize,
    /// Time under load before measuring.
    pub(crate) warmup: Duration,
    /// Time measured, for each case in each round.
    pub(crate) duration: Duration,
    /// How often each case has its turn.
    pub(crate) rounds: usize,
    /// Where servers and generator run; `None` leaves it to the system.
    pub(crate) cores: Option<Cores>,
    /// Servers from package registries that take part.
    pub(crate) peers: Chosen,
}

/// The finished table.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    /// Figures, violations and verdicts, in the form of all scenarios.
    #[serde(flatten)]
    outcome: Outcome,
    /// Sessions that called at the same time.
    sessions: usize,
    /// How often each case had its turn.
    rounds: usize,
    /// True where servers and generator each had a core of their own.
    pinned: bool,
    rows: Vec<Row>,
    /// Why a case has no row.
    left_out: Vec<String>,
}

impl Table {
    /// True where no server gave a wrong answer and no call failed.
    pub(crate) fn is_correct(&self) -> bool {
        self.outcome.is_correct()
    }
}

/// Runs every case in every round.
///
/// # Errors
///
/// Where a server does not start or its sessions cannot be opened, unless it is one of the peers from registries.
pub(crate) async fn run(options: &Options, progress: impl Fn(&str)) -> anyhow::Result<Table> {
    let outcome = Outcome::begin(
        "table",
        format!("echo of 32 bytes over {} sessions", options.sessions),
    );
    let cases = case::cases(&options.peers.installed);
    let mut reports: Vec<Vec<RunReport>> = vec![Vec::new(); cases.len()];
    let mut left_out = options.peers.left_out.clone();
    for round in 1..=options.rounds {
        for (case, reports) in cases.iter().zip(&mut reports) {
            let name = case.name;
            let turn = turn::turn(case, options, |line| {
                progress(&format!("round {round}/{} {name}: {line}", options.rounds));
            });
            match turn.await.with_context(|| format!("case {name}"))? {
                Turn::Measured(report) => reports.push(*report),
                Turn::LeftOut(why) => {
                    let line = format!("{name}: {why}");
                    if !left_out.contains(&line) {
                        left_out.push(line);
                    }
                }
            }
        }
    }
    let rows = row::rows(&cases, &reports);
    Ok(Table {
        outcome: outcome::of(outcome, &rows, options),
        sessions: options.sessions,
        rounds: options.rounds,
        pinned: options.cores.is_some(),
        rows,
        left_out,
    })
}

/// The default Shoal binary: the one built next to this program, if there is one.
pub(crate) fn sibling_shoal() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let sibling = program.parent().map(|directory| directory.join("shoal"))?;
    Path::is_file(&sibling).then_some(sibling)
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "echo of 32 bytes, {} sessions, {} s a case, median of {} rounds, telemetry off, {}",
            self.sessions,
            self.outcome.seconds,
            self.rounds,
            if self.pinned {
                "server and generator on a core each"
            } else {
                "not pinned"
            }
        )?;
        writeln!(out)?;
        row::write_rows(out, &self.rows)?;
        redis::write(out, &self.rows)?;
        report::write_disturbance(out, self.rows.iter().map(|row| row.other_cores))?;
        for row in &self.rows {
            // Calls in flight are waited for, so that no time is exact.
            if row.seconds > self.outcome.seconds * 1.1 + 0.1 {
                writeln!(
                    out,
                    "measured for longer, being slow: {}, up to {:.1} s for {} calls in all rounds",
                    row.case, row.seconds, row.calls
                )?;
            }
        }
        for line in &self.left_out {
            writeln!(out, "left out: {line}")?;
        }
        for row in &self.rows {
            for example in &row.examples {
                writeln!(out, "{}: {example}", row.case)?;
            }
        }
        if self.outcome.verdicts.is_empty() {
            return write!(out, "no verdict without Shoal");
        }
        let verdicts = self.outcome.verdicts.iter().map(Verdict::to_string);
        write!(out, "{}", verdicts.collect::<Vec<_>>().join("\n"))
    }
}
