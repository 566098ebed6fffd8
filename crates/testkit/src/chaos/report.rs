use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::{Counters, Injected, Options, Pauses};
use crate::check::{Verdict, Violation};
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
            self.write(directory, histories)
                .with_context(|| format!("cannot write to {}", directory.display()))?;
            self.kept = Some(directory.to_owned());
        }
        Ok(self)
    }

    fn write(&self, directory: &Path, histories: &[History]) -> anyhow::Result<()> {
        let mut text = String::new();
        for finding in &self.verdict.findings {
            writeln!(text, "{}", serde_json::to_string(finding)?)?;
        }
        std::fs::write(directory.join("findings.jsonl"), text)?;
        let mut text = String::new();
        for injected in &self.injected {
            writeln!(text, "{}", serde_json::to_string(injected)?)?;
        }
        std::fs::write(directory.join("faults.jsonl"), text)?;
        let offended: BTreeSet<usize> = self
            .verdict
            .findings
            .iter()
            .filter_map(|finding| finding.client)
            .collect();
        for history in histories {
            if offended.contains(&history.client) {
                let mut text = String::new();
                for entry in &history.entries {
                    writeln!(text, "{}", serde_json::to_string(entry)?)?;
                }
                let name = format!("client-{}.jsonl", history.client);
                std::fs::write(directory.join(name), text)?;
            }
        }
        Ok(())
    }
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
            write!(out, ", {count} × {}", describe(*code))?;
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
        self.take_overs(out)?;
        self.violations(out)
    }
}

impl Report {
    fn take_overs(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = &self.counters;
        writeln!(
            out,
            "  taken over {} sessions and {} calls; redelivered {}, reattached {}, lost streams {}",
            nodes.taken_over,
            nodes.resumed_calls,
            nodes.redelivered,
            nodes.reattached,
            nodes.lost_streams
        )?;
        writeln!(
            out,
            "  take-over time: edges waited {} times, p50 {} ms, p99 {} ms, longest {} ms",
            nodes.waited, nodes.p50_ms, nodes.p99_ms, nodes.max_ms
        )?;
        writeln!(
            out,
            "  clients saw {} calls held up, p50 {} ms, p99 {} ms, longest {} ms",
            self.pauses.count(),
            self.pauses.quantile(0.5).as_millis(),
            self.pauses.quantile(0.99).as_millis(),
            self.pauses.quantile(1.0).as_millis(),
        )?;
        write!(out, "{}", self.pauses)
    }

    fn violations(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            let client = finding.client;
            let client = client.map_or_else(String::new, |client| format!("client {client}: "));
            write!(
                out,
                "\n    {:?}: {client}{}",
                finding.violation, finding.detail
            )?;
        }
        if let Some(kept) = &self.kept {
            write!(out, "\n  findings, histories and logs: {}", kept.display())?;
        }
        Ok(())
    }
}

fn describe(code: i64) -> String {
    use crate::check::code;
    match code {
        code::OVERLOADED => "overloaded (50300)".to_owned(),
        code::NOT_EXECUTED => "not executed (50301)".to_owned(),
        code::OUTCOME_UNKNOWN => "outcome unknown (50002)".to_owned(),
        0 => "failed in the tool".to_owned(),
        other => format!("error {other}"),
    }
}
