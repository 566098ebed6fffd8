//! Remembers which calls ended a session's connections, so that only similar calls wait for the next.

use std::collections::VecDeque;

use shoal_ports::{CallFailure, CallOutcome, FailureKey};

const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Blame(VecDeque<FailureKey>);

impl Blame {
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

    /// If no call ran when the last connection ended, any kind of call may have ended it.
    pub(super) fn may_be_on(&self, key: &FailureKey) -> bool {
        self.0.is_empty() || self.0.contains(key)
    }
}
