//! Each case of each round has its own process. The cases take turns, so that a slow minute affects all.

mod bar;
mod case;
mod chosen;
mod outcome;
mod redis;
mod row;
mod turn;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::affinity::Cores;
use crate::cli::{self, Turns};
use crate::outcome::{Outcome, Verdict};
use crate::report::{self, RunReport};
use crate::scenario::{Finished, finish};
use chosen::{Chosen, installed};
use row::Row;
use turn::Turn;

#[derive(Debug)]
struct Options {
    turns: Turns,
    cores: Option<Cores>,
    peers: Chosen,
}

#[derive(Debug, Serialize)]
struct Table {
    #[serde(flatten)]
    outcome: Outcome,
    sessions: usize,
    rounds: usize,
    pinned: bool,
    rows: Vec<Row>,
    left_out: Vec<String>,
}

impl Finished for Table {
    fn is_correct(&self) -> bool {
        self.outcome.is_correct()
    }
}

pub(crate) fn execute(table: cli::Table) -> anyhow::Result<bool> {
    let mut turns = table.turns;
    ensure!(turns.rounds > 0, "at least one round is needed");
    // Without Shoal's binary, its rows are left out.
    turns.shoal = turns.shoal.or_else(sibling_shoal);
    let options = Options {
        // Installs peers before this process is limited to one core.
        peers: installed(&table.peers, table.peers_dir, crate::progress)?,
        cores: crate::pinned()?,
        turns,
    };
    let table = crate::runtime(Some(1))?.block_on(run(&options))?;
    finish(&table, options.turns.json.as_deref())
}

/// Measures all cases. Fails if a server does not start, unless it is a peer from a registry.
async fn run(options: &Options) -> anyhow::Result<Table> {
    let outcome = Outcome::begin(
        "table",
        format!("echo of 32 bytes over {} sessions", options.turns.sessions),
    );
    let cases = case::cases(&options.peers.installed);
    let mut reports: Vec<Vec<RunReport>> = vec![Vec::new(); cases.len()];
    let mut left_out = options.peers.left_out.clone();
    for round in 1..=options.turns.rounds {
        for (case, reports) in cases.iter().zip(&mut reports) {
            let name = case.name;
            let turn = turn::turn(case, options, |line| {
                crate::progress(&format!(
                    "round {round}/{} {name}: {line}",
                    options.turns.rounds
                ));
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
        sessions: options.turns.sessions,
        rounds: options.turns.rounds,
        pinned: options.cores.is_some(),
        rows,
        left_out,
    })
}

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
            // A run waits for calls in flight.
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
