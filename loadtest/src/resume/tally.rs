use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::mcp::violation::{Finding, Violation};

const EXAMPLES: usize = 20;

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) sessions: u64,
    pub(crate) calls: u64,
    pub(crate) answered: u64,
    /// Connections that a client dropped within a stream.
    pub(crate) drops: u64,
    /// Connections that stayed open and unread while the stream was resumed elsewhere.
    pub(crate) half_open: u64,
    pub(crate) server_ends: u64,
    pub(crate) resumes: u64,
    /// Resumes after the call's end.
    pub(crate) late_resumes: u64,
    pub(crate) replays: u64,
    /// Retries because the server was away or busy.
    pub(crate) retries: u64,
    pub(crate) events: u64,
    pub(crate) listens: u64,
    pub(crate) updates: u64,
    pub(crate) increments: u64,
    /// Sessions that ended because the server was away or refused.
    pub(crate) broken_sessions: u64,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) counts: Counts,
    pub(crate) violations: BTreeMap<Violation, u64>,
    pub(crate) examples: Vec<String>,
    pub(crate) broken: Vec<String>,
}

impl Snapshot {
    pub(crate) fn violations(&self) -> u64 {
        self.violations.values().sum()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.violations() == 0 && self.counts.broken_sessions == 0
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        let of = |violation| self.violations.get(&violation).copied().unwrap_or(0);
        let (lost, duplicated) = (of(Violation::Lost), of(Violation::Duplicated));
        let (disordered, missing) = (of(Violation::OutOfOrder), of(Violation::MissingAnswer));
        write!(
            out,
            "{} calls, {} drops, {} resumes ({} late), {} replays, {} events, {} updates | lost {lost}, duplicated {duplicated}, out of order {disordered}, missing answers {missing}, other {}",
            counts.calls,
            counts.drops,
            counts.resumes,
            counts.late_resumes,
            counts.replays,
            counts.events,
            counts.updates,
            self.violations() - lost - duplicated - disordered - missing + counts.broken_sessions,
        )
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    snapshot: Mutex<Snapshot>,
}

impl Tally {
    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.locked().counts);
    }

    pub(crate) fn found(&self, client: usize, findings: impl IntoIterator<Item = Finding>) {
        let mut snapshot = self.locked();
        for finding in findings {
            *snapshot.violations.entry(finding.violation).or_default() += 1;
            if snapshot.examples.len() < EXAMPLES {
                let Finding { violation, detail } = finding;
                let example = format!("client {client}: {violation:?}: {detail}");
                snapshot.examples.push(example);
            }
        }
    }

    pub(crate) fn broken(&self, client: usize, why: &impl fmt::Display) {
        let mut snapshot = self.locked();
        snapshot.counts.broken_sessions += 1;
        if snapshot.broken.len() < EXAMPLES {
            snapshot.broken.push(format!("client {client}: {why}"));
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
