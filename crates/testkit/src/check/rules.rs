use std::collections::HashMap;
use std::time::Duration;

/// The excuses of a run. The default excuses no deviation.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Excuses unknown outcomes.
    pub outcome_unknown: bool,
    /// Excuses a second run of a repeatable call, which reports its steps again.
    pub reruns: bool,
    /// Excuses errors of calls that did not run.
    pub not_executed: bool,
    /// The times when all data was lost. Older sessions must be reported as gone.
    pub wipes: Vec<Outage>,
    /// The times when Redis acknowledged writes and may have lost them.
    pub lost_writes: Vec<Outage>,
    /// When edges were down.
    pub outages: Vec<Outage>,
    /// For the tag of each broken exchange, the edge that broke it.
    pub broke_at: HashMap<String, String>,
}

/// A time in which a member or Redis was down, or about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The member's name.
    pub member: String,
    /// The start, since the run began.
    pub from: Duration,
    /// The end, since the run began.
    pub until: Duration,
}

impl Rules {
    pub(super) fn edge_was_killed(&self, tag: &str, sent: Duration, broke: Duration) -> bool {
        let edge = self.broke_at.get(tag);
        self.outages.iter().any(|outage| {
            Some(&outage.member) == edge && outage.from <= broke && sent <= outage.until
        })
    }

    pub(super) fn may_be_gone(&self, sent: Duration, heard: Duration) -> bool {
        !self.wipes.is_empty() || self.lost_writes_between(sent, heard)
    }

    pub(super) fn lost_writes_between(&self, from: Duration, until: Duration) -> bool {
        let written = |lost: &Outage| from <= lost.until && lost.from <= until;
        self.lost_writes.iter().any(written)
    }

    pub(super) fn may_forget(&self) -> bool {
        !self.wipes.is_empty() || !self.lost_writes.is_empty()
    }
}
