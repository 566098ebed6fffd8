//! Tasks.

use super::definition::{Attribute, Kind, definitions};
use super::instrument::{Counter, Factory};
use super::labels::{STATE, label, labels};
use super::observed::{Observed, Registration};

definitions! {
    HELD = Kind::UpDownCounter, "shoal.task.held", "{task}",
        "Tasks that this node holds.",
        [Attribute::one_of(STATE, TaskStatus::VALUES)];
    CHANGES = Kind::Counter, "shoal.task.changes", "{change}",
        "Changes of a task's status, by the status that it changed to.",
        [Attribute::one_of(STATE, TaskStatus::VALUES)];
}

labels! {
    /// What a task is doing.
    TaskStatus {
        /// It runs.
        Working = "working",
        /// It waits for the client.
        InputRequired = "input_required",
        /// It has a result.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// The client cancelled it.
        Cancelled = "cancelled",
    }
}

/// Tasks.
#[derive(Debug)]
pub struct TaskMetrics {
    held: Observed,
    changes: Counter,
}

impl TaskMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            held: factory.observed(&HELD),
            changes: factory.counter(&CHANGES),
        }
    }

    /// How many tasks there are in each status.
    pub fn observe_held(
        &self,
        read: impl Fn(&mut dyn FnMut(TaskStatus, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.held.by(STATE, read)
    }

    /// A task changed to `status`; a new one changes to [`TaskStatus::Working`].
    pub fn changed(&self, status: TaskStatus) {
        (self.changes).add(1, || [label(STATE, status.as_str())]);
    }
}
