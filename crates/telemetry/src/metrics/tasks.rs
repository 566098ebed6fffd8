use super::area::area;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of tasks.
    TaskMetrics {
        /// Counts a call that was to become a task.
        pub created: Counter [outcome: TaskOutcome]
            = "shoal.task.created", "{task}", "Calls that should become tasks.";
        /// Counts a task taken over from a lost node, without a request for it.
        pub adopted: Counter []
            = "shoal.task.adopted", "{task}", "Tasks taken over from lost nodes.";
        /// Counts a task that ended.
        pub ended: Counter [outcome: TaskStatus]
            = "shoal.task.ended", "{task}", "Tasks that ended.";
    }
}

labels! {
    /// Whether a call became a task.
    TaskOutcome: OUTCOME {
        /// Created.
        Created = "created",
        /// By a limit, or an unreachable node or store. A 2026-07-28 call continues without a task.
        Refused = "refused",
    }
}

labels! {
    /// How a task ended.
    TaskStatus: OUTCOME {
        /// With a result, perhaps a failed tool's.
        Completed = "completed",
        /// With an error.
        Failed = "failed",
        /// Cancelled.
        Cancelled = "cancelled",
    }
}
