//! What telemetry costs: the same calls without it, with it, and with its collector down.
//!
//! As in the table of servers, every case of every round gets a server process of its own, and the cases take turns.

mod case;
mod row;
mod turn;
mod verdict;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::affinity::Cores;
use crate::mcp::Mode;
use crate::report;
use case::{CASES, Deployment};
use row::Row;
use turn::Turn;
use verdict::Judgement;

/// What to compare, and how.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The Shoal binary.
    pub(crate) shoal: PathBuf,
    /// The era to speak.
    pub(crate) mode: Mode,
    /// Whether the cluster's cases are measured too.
    pub(crate) cluster: bool,
    /// Sessions that call at the same time.
    pub(crate) sessions: usize,
    /// Time under load before measuring.
    pub(crate) warmup: Duration,
    /// Time measured, for each case in each round.
    pub(crate) duration: Duration,
    /// How often each case has its turn.
    pub(crate) rounds: usize,
    /// Where servers, generator and collector run; `None` leaves it to the system.
    pub(crate) cores: Option<Cores>,
}

/// The finished comparison.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    mode: Mode,
    /// Sessions that called at the same time.
    sessions: usize,
    /// Time measured for each case in each round, in seconds.
    seconds: f64,
    /// How often each case had its turn.
    rounds: usize,
    /// True where servers and generator each had a core of their own.
    pinned: bool,
    /// True where the collector had one too.
    collector_apart: bool,
    rows: Vec<Row>,
    judgements: Vec<Judgement>,
}

impl Comparison {
    /// True where no server gave a wrong answer and no call failed.
    pub(crate) fn is_correct(&self) -> bool {
        self.rows
            .iter()
            .all(|row| row.wrong == 0 && row.failed == 0)
    }
}

/// Runs every case in every round.
///
/// # Errors
///
/// Where a server does not start, its sessions cannot be opened, or it does not do what its case is about.
pub(crate) async fn run(options: &Options, progress: impl Fn(&str)) -> anyhow::Result<Comparison> {
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); CASES.len()];
    for round in 1..=options.rounds {
        for index in order(round) {
            let case = &CASES[index];
            if case.deployment == Deployment::Cluster && !options.cluster {
                continue;
            }
            let name = case.name;
            let progress = |line: &str| {
                progress(&format!("round {round}/{} {name}: {line}", options.rounds));
            };
            let turn = turn::turn(case, &options.shoal, options, progress).await;
            turns[index].push(turn.with_context(|| format!("case {name}"))?);
        }
    }
    let rows = row::rows(&turns);
    let cores = options.cores;
    Ok(Comparison {
        mode: options.mode,
        sessions: options.sessions,
        seconds: options.duration.as_secs_f64(),
        rounds: options.rounds,
        pinned: cores.is_some(),
        collector_apart: cores.is_some_and(|cores| cores.collector != cores.generator),
        judgements: verdict::judge(&rows),
        rows,
    })
}

/// The cases of a round: each round begins with another, or what comes first would always meet the machine at rest.
fn order(round: usize) -> impl Iterator<Item = usize> {
    let first = round * CASES.len() / 2 + round / 2;
    (first..first + CASES.len()).map(|turn| turn % CASES.len())
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let placed = match (self.pinned, self.collector_apart) {
            (true, true) => "server, generator and collector on a core each",
            (true, false) => "server on one core, generator and collector on another",
            (false, _) => "not pinned",
        };
        writeln!(
            out,
            "echo of 32 bytes, {} calls, {} sessions, {} s a case, median of {} rounds, {placed}",
            self.mode.name(),
            self.sessions,
            self.seconds,
            self.rounds,
        )?;
        writeln!(out)?;
        row::write_rows(out, &self.rows)?;
        report::write_disturbance(out, self.rows.iter().map(|row| row.other_cores))?;
        for row in &self.rows {
            for example in &row.examples {
                writeln!(out, "{}: {example}", row.case)?;
            }
        }
        let mut judgements = self.judgements.iter();
        if let Some(first) = judgements.next() {
            write!(out, "{first}")?;
        }
        for judgement in judgements {
            write!(out, "\n{judgement}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::case::CASES;
    use super::order;

    #[test]
    fn every_round_has_every_case_and_begins_with_another() {
        let rounds: Vec<Vec<usize>> = (1..=4).map(|round| order(round).collect()).collect();
        for round in &rounds {
            let cases: HashSet<usize> = round.iter().copied().collect();
            assert_eq!((round.len(), cases.len()), (CASES.len(), CASES.len()));
        }
        let first: HashSet<usize> = rounds.iter().map(|round| round[0]).collect();
        assert_eq!(first.len(), rounds.len());
    }
}
