//! What all clients of a resume run did and found, so far.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::violation::{Finding, Violation};

/// How many findings are kept in words.
const EXAMPLES: usize = 20;

/// What was done.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Counts {
    /// Sessions opened.
    pub(crate) sessions: u64,
    /// Calls of the long tool that the server accepted.
    pub(crate) calls: u64,
    /// Those that were answered.
    pub(crate) answered: u64,
    /// Connections that a client dropped in the middle of a stream.
    pub(crate) drops: u64,
    /// Those of them that stayed open, unread, while the stream was resumed elsewhere.
    pub(crate) half_open: u64,
    /// Streams that the server ended before the answer.
    pub(crate) server_ends: u64,
    /// Streams resumed.
    pub(crate) resumes: u64,
    /// Those of them resumed after the call had ended.
    pub(crate) late_resumes: u64,
    /// Finished streams asked for again and compared.
    pub(crate) replays: u64,
    /// Requests repeated because the server was not there or asked to come back.
    pub(crate) retries: u64,
    /// Events received, without replays.
    pub(crate) events: u64,
    /// Standalone streams opened or resumed.
    pub(crate) listens: u64,
    /// Resource updates received.
    pub(crate) updates: u64,
    /// Calls of the short tool that changes the resource.
    pub(crate) increments: u64,
    /// Sessions given up because the server could not be reached or refused.
    pub(crate) broken_sessions: u64,
}

/// What was done, what was found.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Snapshot {
    /// What was done.
    pub(crate) counts: Counts,
    /// What was found, by kind.
    pub(crate) violations: BTreeMap<Violation, u64>,
    /// The first few findings, in words.
    pub(crate) examples: Vec<String>,
    /// The first few reasons why sessions were given up.
    pub(crate) broken: Vec<String>,
}

impl Snapshot {
    /// How many violations of all kinds there are.
    pub(crate) fn violations(&self) -> u64 {
        self.violations.values().sum()
    }

    /// True where nothing was violated and no session broke.
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

/// The counts that all clients share.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    snapshot: Mutex<Snapshot>,
}

impl Tally {
    /// Changes a count.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.locked().counts);
    }

    /// Adds what `client` found.
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

    /// Counts a session that `client` gave up.
    pub(crate) fn broken(&self, client: usize, why: &impl fmt::Display) {
        let mut snapshot = self.locked();
        snapshot.counts.broken_sessions += 1;
        if snapshot.broken.len() < EXAMPLES {
            snapshot.broken.push(format!("client {client}: {why}"));
        }
    }

    /// The counts now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
