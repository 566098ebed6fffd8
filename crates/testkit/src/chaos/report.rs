use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use super::{Counters, Injected, Options, Pauses};
use crate::check::{Verdict, Violation, code};
use crate::cluster::Cluster;
use crate::history::History;

const PRINTED: usize = 10;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The parameters of the run.
    pub options: Options,
    /// The injected faults.
    pub injected: Vec<Injected>,
    /// The duration, without the settling time.
    pub took: Duration,
    /// How often a connection was cut or delayed.
    pub disturbed: u64,
    /// The counters of take-overs.
    pub counters: Counters,
    /// The delays of calls.
    pub pauses: Pauses,
    /// The findings.
    pub verdict: Verdict,
    /// The directory of the evidence, if a promise was broken.
    pub kept: Option<PathBuf>,
}

impl Report {
    /// Whether every promise was kept.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.verdict.is_clean()
    }

    pub(super) fn keep(mut self, cluster: &Cluster, histories: &[History]) -> anyhow::Result<Self> {
        if !self.is_clean() {
            let directory = cluster.directory().keep();
            self.write(directory, histories)?;
            self.kept = Some(directory.to_owned());
        }
        Ok(self)
    }

    fn write(&self, directory: &Path, histories: &[History]) -> anyhow::Result<()> {
        let findings = &self.verdict.findings;
        lines(&directory.join("findings.jsonl"), findings)?;
        lines(&directory.join("faults.jsonl"), &self.injected)?;
        let offended = |client| {
            findings
                .iter()
                .any(|finding| finding.client == Some(client))
        };
        for history in histories.iter().filter(|history| offended(history.client)) {
            let name = format!("client-{}.jsonl", history.client);
            lines(&directory.join(name), &history.entries)?;
        }
        Ok(())
    }
}

fn lines(path: &Path, values: &[impl Serialize]) -> anyhow::Result<()> {
    let lines = values.iter().map(serde_json::to_string);
    let text = lines.collect::<Result<Vec<_>, _>>()?.join("\n") + "\n";
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options {
            fault,
            seed,
            sessions,
            modern,
            tasks,
            edges,
            session_nodes,
            workers,
            ..
        } = &self.options;
        let counts = &self.verdict.counts;
        let (name, times) = (fault.name(), self.injected.len());
        writeln!(
            out,
            "{name}: {times} faults in {} s ({} connections disturbed), {sessions} sessions, {modern} modern clients, {tasks} with tasks, {edges} edges, {session_nodes} session nodes, {workers} workers, seed {seed}",
            self.took.as_secs(),
            self.disturbed
        )?;
        write!(
            out,
            "  calls {} ({} tasks), answers {}: {} results",
            counts.calls,
            counts.tasks,
            counts.answers(),
            counts.results
        )?;
        for (code, count) in &counts.errors {
            let text = match *code {
                code::OVERLOADED => "overloaded",
                code::NOT_EXECUTED => "not executed",
                code::OUTCOME_UNKNOWN => "outcome unknown",
                0 => "failed in the tool",
                _ => "another error",
            };
            write!(out, ", {count} × {text} ({code})")?;
        }
        writeln!(
            out,
            "; lost with their edge {}, told that they are gone {}",
            counts.lost_with_edge, counts.gone
        )?;
        write!(out, "  requests {}", counts.requests)?;
        for (status, count) in &counts.refused {
            write!(out, ", {count} × HTTP {status}")?;
        }
        writeln!(
            out,
            "; sessions {}, told that they are gone {}",
            counts.sessions, counts.forgotten
        )?;
        writeln!(
            out,
            "  broken streams {}, left on purpose {} ({} hung up), resumed {}; events {}, executions {}",
            counts.breaks,
            counts.left,
            counts.hung_up,
            counts.resumes,
            counts.events,
            counts.executions
        )?;
        writeln!(out, "  {}", self.counters)?;
        writeln!(out, "  clients saw {}", self.pauses)?;
        let verdict = &self.verdict;
        let named = [
            (Violation::Lost, "lost"),
            (Violation::Duplicated, "duplicated"),
            (Violation::OutOfOrder, "out of order"),
            (Violation::ExecutedTwice, "at-most-once violations"),
            (Violation::Forgotten, "forced re-initialisations"),
            (Violation::Held, "still held"),
        ];
        let mut other = verdict.findings.len();
        write!(out, "  ")?;
        for (violation, name) in named {
            let count = verdict.count(violation);
            other -= count;
            write!(out, "{count} {name}, ")?;
        }
        write!(out, "{other} other violations")?;
        for finding in verdict.findings.iter().take(PRINTED) {
            write!(out, "\n    {finding}")?;
        }
        if let Some(kept) = &self.kept {
            write!(out, "\n  findings, histories and logs: {}", kept.display())?;
        }
        Ok(())
    }
}
