//! What the faults of a run excuse.

use std::collections::HashMap;
use std::time::Duration;

/// What a run's faults excuse; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Workers die, or the way to them breaks: calls may end with an outcome that nobody knows.
    pub outcome_unknown: bool,
    /// Something dies that a call which is safe to repeat runs on: it may be run again, and report its steps
    /// from the first again.
    pub reruns: bool,
    /// Calls may end with an error that says that nothing was executed.
    pub not_executed: bool,
    /// When all data was lost. Sessions that are older must be told.
    pub wipes: Vec<Outage>,
    /// When writes were made that Redis acknowledged, and lost or may have lost: what only it knew may be gone.
    pub lost_writes: Vec<Outage>,
    /// When edges were killed.
    pub outages: Vec<Outage>,
    /// Which edge had the exchanges that broke, by tag.
    pub broke_at: HashMap<String, String>,
}

/// A time in which a member (or Redis) was down, or about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The member.
    pub member: String,
    /// Since the beginning of the run.
    pub from: Duration,
    /// Until when.
    pub until: Duration,
}

impl Rules {
    /// Whether an exchange that lasted from `sent` to `broke` can have broken because its edge was killed.
    pub(super) fn edge_was_killed(&self, tag: &str, sent: Duration, broke: Duration) -> bool {
        let edge = self.broke_at.get(tag);
        self.outages.iter().any(|outage| {
            Some(&outage.member) == edge && outage.from <= broke && sent <= outage.until
        })
    }

    /// Whether what was written for a request may be gone, which was sent and last heard of then.
    pub(super) fn may_be_gone(&self, sent: Duration, heard: Duration) -> bool {
        !self.wipes.is_empty() || self.lost_writes_between(sent, heard)
    }

    /// Whether Redis may have lost something that was written between these times, and has what was written before.
    pub(super) fn lost_writes_between(&self, from: Duration, until: Duration) -> bool {
        let written = |lost: &Outage| from <= lost.until && lost.from <= until;
        self.lost_writes.iter().any(written)
    }

    /// Whether something that clients were told of may be gone.
    pub(super) fn may_forget(&self) -> bool {
        !self.wipes.is_empty() || !self.lost_writes.is_empty()
    }
}
