//! Running calls that survive their session's owner.

use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of journaled calls.
    JournalMetrics {
        /// Observes how many journaled calls run.
        pub observe_running: UpDownCounter(u64) []
            = "shoal.journal.running", "{call}",
            "Journaled calls that run in this node's sessions.";
        /// Counts a hold that ended.
        pub held: Counter [outcome: HoldOutcome]
            = "shoal.journal.holds", "{call}",
            "Held calls: dispatched before they were journaled.";
        /// Records how long a journal write took.
        pub begun: Histogram(SHORT_SECONDS) [outcome: BeginOutcome]
            = "shoal.journal.begin.duration", "s", "Journal writes before dispatch.";
        /// Counts an attempt to reattach to a running call.
        pub attached: Counter [outcome: AttachOutcome]
            = "shoal.journal.attaches", "{attach}", "Attempts to reattach to a running call.";
    }
}

labels! {
    /// How a hold ended.
    HoldOutcome: OUTCOME {
        /// Answered before the journal write.
        Answered = "answered",
        /// The call took too long, produced an event or has a large result, and is journaled.
        Outlasted = "outlasted",
        /// The client disconnected.
        Left = "left",
    }
}

labels! {
    /// The outcome of journaling a call.
    BeginOutcome: OUTCOME {
        /// The call may be dispatched.
        Begun = "begun",
        /// An earlier delivery of the call has journaled it.
        Repeated = "repeated",
        /// Another node owns the session.
        Stale = "stale",
        /// A limit is reached.
        Full = "full",
        /// The store could not be reached, or did not answer in time.
        Unavailable = "unavailable",
        /// Another failure.
        Failed = "failed",
    }
}

labels! {
    /// The outcome of reattaching to a running call.
    AttachOutcome: OUTCOME {
        /// The call's events continue.
        Attached = "attached",
        /// The worker is gone.
        WorkerGone = "worker_gone",
        /// The worker does not know the call.
        Unknown = "unknown",
        /// The outcome is unknown, and the client gets that error.
        Lost = "lost",
        /// Another failure.
        Failed = "failed",
    }
}
