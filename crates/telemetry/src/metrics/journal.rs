use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of journaled calls.
    JournalMetrics {
        /// Observes running journaled calls.
        pub observe_running: UpDownCounter(u64) []
            = "shoal.journal.running", "{call}",
            "Journaled calls that run in this node's sessions.";
        /// Counts a hold that ended.
        pub held: Counter [outcome: HoldOutcome]
            = "shoal.journal.holds", "{call}", "Calls that Shoal held: it dispatched them before it journaled them.";
        /// Records a journal write's duration.
        pub begun: Histogram(SHORT_SECONDS) [outcome: BeginOutcome]
            = "shoal.journal.begin.duration", "s", "Time of journal writes before a call's dispatch.";
        /// Counts an attempt to reattach to a running call.
        pub attached: Counter [outcome: AttachOutcome]
            = "shoal.journal.attaches", "{attach}", "Attempts of a session's owner to reattach to a running call.";
    }
}

labels! {
    /// How a hold ended.
    HoldOutcome: OUTCOME {
        /// The call ended within the hold, and Shoal stored nothing.
        Answered = "answered",
        /// The call took longer, sent an event or had a large result, and Shoal journaled it.
        Outlasted = "outlasted",
        /// The client left during the hold.
        Left = "left",
    }
}

labels! {
    /// The outcome of journaling a call.
    BeginOutcome: OUTCOME {
        /// Shoal may dispatch the call.
        Begun = "begun",
        /// An earlier delivery of the request has journaled the call.
        Repeated = "repeated",
        /// Another node owns the session.
        Stale = "stale",
        /// The journal entry exceeds a limit of the store.
        Full = "full",
        /// Shoal could not reach the store, or the store did not answer in time.
        Unavailable = "unavailable",
        /// The write failed for another reason.
        Failed = "failed",
    }
}

labels! {
    /// The outcome of reattaching to a running call.
    AttachOutcome: OUTCOME {
        /// This node receives the call's events again.
        Attached = "attached",
        /// The call's worker is gone.
        WorkerGone = "worker_gone",
        /// The worker does not know the call.
        Unknown = "unknown",
        /// Nobody knows how the call ended, and its client gets an error that says so.
        Lost = "lost",
        /// The attempt failed for another reason.
        Failed = "failed",
    }
}
