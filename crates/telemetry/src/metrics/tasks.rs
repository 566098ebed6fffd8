use super::area::area;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of tasks.
    TaskMetrics {
        /// Counts a call that was to become a task.
        pub created: Counter [outcome: TaskOutcome]
            = "shoal.task.created", "{task}", "Calls that were to become tasks: after `tasks.after` (2026-07-28), or at once (2025-11-25).";
        /// Counts a task taken over from a lost node, without a request for it.
        pub adopted: Counter []
            = "shoal.task.adopted", "{task}", "Tasks that this node took over from lost nodes.";
        /// Counts a task that ended.
        pub ended: Counter [outcome: TaskStatus]
            = "shoal.task.ended", "{task}", "Tasks that ended.";
    }
}

labels! {
    /// Whether a call became a task.
    TaskOutcome: OUTCOME {
        /// The call became a task.
        Created = "created",
        /// A limit or an unreachable part prevented the task. A 2026-07-28 call continues without it.
        Refused = "refused",
    }
}

labels! {
    /// How a task ended.
    TaskStatus: OUTCOME {
        /// The task has a result, which may say that the tool failed.
        Completed = "completed",
        /// The task ended with an error.
        Failed = "failed",
        /// The client cancelled the task.
        Cancelled = "cancelled",
    }
}
