//! Each case of each round has its own process, and the cases take turns.

mod arguments;
mod case;
mod cases;
mod credentials;
mod files;
mod instructions;
mod proof;
mod quotas;
mod row;
mod rules;
mod turn;
mod verdict;

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::affinity::Cores;
use crate::cli::Turns;
use crate::report;
use crate::scenario::{Finished, finish};
use crate::servers::spawned::shoal_binary;
pub(crate) use arguments::{Features, Telemetry};
use case::Case;
use row::Row;
use turn::Turn;
use verdict::Judgement;

#[derive(Debug)]
struct Options {
    turns: Turns,
    shoal: PathBuf,
    cores: Option<Cores>,
}

#[derive(Debug, Serialize)]
struct Comparison {
    sessions: usize,
    seconds: f64,
    rounds: usize,
    pinned: bool,
    collector_apart: bool,
    rows: Vec<Row>,
    judgements: Vec<Judgement>,
}

impl Finished for Comparison {
    fn is_correct(&self) -> bool {
        self.rows
            .iter()
            .all(|row| row.wrong == 0 && row.failed == 0)
    }
}

pub(crate) fn execute(arguments: Features) -> anyhow::Result<bool> {
    let cases = arguments.cases()?;
    if !arguments.instructions {
        return compare(cases, arguments.turns);
    }
    let shoal = shoal_binary(arguments.turns.shoal.as_deref())?;
    let counts = crate::runtime(Some(1))?.block_on(instructions::count(&cases, &shoal))?;
    finish(&counts, arguments.turns.json.as_deref())
}

pub(crate) fn telemetry(arguments: Telemetry) -> anyhow::Result<bool> {
    let cases = arguments.cases();
    compare(cases, arguments.turns)
}

fn compare(cases: Vec<Case>, turns: Turns) -> anyhow::Result<bool> {
    ensure!(
        turns.rounds > 1,
        "at least two rounds are needed: what they differ by is the noise that differences are judged by"
    );
    let options = Options {
        shoal: shoal_binary(turns.shoal.as_deref())?,
        cores: crate::pinned()?,
        turns,
    };
    let comparison = crate::runtime(Some(1))?.block_on(run(&cases, &options))?;
    finish(&comparison, options.turns.json.as_deref())
}

async fn run(cases: &[Case], options: &Options) -> anyhow::Result<Comparison> {
    let rounds = options.turns.rounds;
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); cases.len()];
    for round in 1..=rounds {
        for index in order(round, cases.len()) {
            let case = &cases[index];
            let name = format!("{} {}", case.mode.name(), case.name);
            let progress = |line: &str| {
                crate::progress(&format!("round {round}/{rounds} {name}: {line}"));
            };
            let turn = turn::turn(case, options, progress).await;
            turns[index].push(turn.with_context(|| format!("case {name}"))?);
        }
    }
    let rows = row::rows(cases, &turns);
    let cores = options.cores;
    Ok(Comparison {
        sessions: options.turns.sessions,
        seconds: options.turns.time().as_secs_f64(),
        rounds,
        pinned: cores.is_some(),
        collector_apart: cores.is_some_and(|cores| cores.collector != cores.generator),
        judgements: verdict::judge(&rows),
        rows,
    })
}

/// The first case runs on an idle machine, so rounds start with different cases.
fn order(round: usize, cases: usize) -> impl Iterator<Item = usize> {
    let first = round * cases / 2 + round / 2;
    (first..first + cases).map(move |turn| turn % cases)
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
            "echo of 32 bytes, {} sessions, {} s a case, median of {} rounds, {placed}",
            self.sessions, self.seconds, self.rounds,
        )?;
        writeln!(out)?;
        row::write_rows(out, &self.rows)?;
        report::write_disturbance(out, self.rows.iter().map(|row| row.other_cores))?;
        for row in &self.rows {
            for example in &row.examples {
                writeln!(out, "{} {}: {example}", row.mode.name(), row.case)?;
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

    use super::order;

    #[test]
    fn every_round_has_every_case_and_begins_with_another() {
        for count in [6, 7, 8, 14] {
            let rounds: Vec<Vec<usize>> =
                (1..=4).map(|round| order(round, count).collect()).collect();
            for round in &rounds {
                let cases: HashSet<usize> = round.iter().copied().collect();
                assert_eq!((round.len(), cases.len()), (count, count));
            }
            let first: HashSet<usize> = rounds.iter().map(|round| round[0]).collect();
            assert_eq!(first.len(), rounds.len(), "{count} cases");
        }
    }
}
