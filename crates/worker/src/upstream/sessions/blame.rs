//! Which calls ended a session's connections: calls like those wait for the next one, and others do not.

use std::collections::VecDeque;

use shoal_ports::{CallFailure, CallOutcome, FailureKey};

/// Calls that are remembered at most.
const MOST: usize = 64;

/// The kinds of calls that were running when a connection ended, and have not succeeded since.
#[derive(Default)]
pub(super) struct Blame(VecDeque<FailureKey>);

impl Blame {
    /// A call of this kind has ended so.
    pub(super) fn note(&mut self, key: &FailureKey, outcome: &CallOutcome) {
        match outcome {
            CallOutcome::Failed(CallFailure::OutcomeUnknown { .. }) => {
                if !self.0.contains(key) {
                    self.0.truncate(MOST - 1);
                    self.0.push_front(*key);
                }
            }
            CallOutcome::Failed(_) => {}
            _ => self.0.retain(|blamed| blamed != key),
        }
    }

    /// Whether a call of this kind may be why the last connection ended. Where no call was running, each may.
    pub(super) fn may_be_on(&self, key: &FailureKey) -> bool {
        self.0.is_empty() || self.0.contains(key)
    }
}
