use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of journaled calls.
    JournalMetrics {
        /// Observes running journaled calls.
        pub observe_running: UpDownCounter(u64) []
            = "shoal.journal.running", "{call}",
            "Running journaled calls of this node's sessions.";
        /// Counts a hold that ended.
        pub held: Counter [outcome: HoldOutcome]
            = "shoal.journal.holds", "{call}", "Calls with a hold.";
        /// Records a journal write's duration.
        pub begun: Histogram(SHORT_SECONDS) [outcome: BeginOutcome]
            = "shoal.journal.begin.duration", "s", "Time to write calls into the journal.";
        /// Counts an attempt to reattach to a running call.
        pub attached: Counter [outcome: AttachOutcome]
            = "shoal.journal.attaches", "{attach}", "Attempts of owners to reattach to a running call.";
    }
}

labels! {
    /// How a hold ended.
    HoldOutcome: OUTCOME {
        /// Ended within the hold, nothing stored.
        Answered = "answered",
        /// Journaled, because the call took longer, had an event or a large result.
        Outlasted = "outlasted",
        /// The client left.
        Left = "left",
    }
}

labels! {
    /// The outcome of journaling a call.
    BeginOutcome: OUTCOME {
        /// Begun.
        Begun = "begun",
        /// Journaled by an earlier delivery.
        Repeated = "repeated",
        /// Another node owns the session.
        Stale = "stale",
        /// Limit of the store reached.
        Full = "full",
        /// Store unreachable or too slow.
        Unavailable = "unavailable",
        /// Failed.
        Failed = "failed",
    }
}

labels! {
    /// The outcome of reattaching to a running call.
    AttachOutcome: OUTCOME {
        /// Attached.
        Attached = "attached",
        /// Worker gone.
        WorkerGone = "worker_gone",
        /// Worker does not know the call.
        Unknown = "unknown",
        /// Outcome unknown: the client gets 50002.
        Lost = "lost",
        /// Failed.
        Failed = "failed",
    }
}
