use super::area::area;
use super::definition::WAIT_SECONDS;
use super::labels::{OUTCOME, REASON, STATE, labels};

area! {
    /// The metrics of legacy sessions.
    SessionMetrics {
        /// Observes this node's sessions.
        pub observe_held: UpDownCounter(u64) [state: SessionState]
            = "shoal.session.held", "{session}", "Sessions that this node owns.";
        /// Counts a new session. [`McpMetrics::session_ended`](super::McpMetrics::session_ended) records the lifetime.
        pub created: Counter []
            = "shoal.session.created", "{session}", "Sessions created by this node.";
        /// Counts an ended session.
        pub ended: Counter [reason: EndReason]
            = "shoal.session.ended", "{session}", "Sessions ended on this node.";
        /// Counts a passivated session.
        pub passivated: Counter []
            = "shoal.session.passivations", "{session}", "Idle sessions moved from memory to the store.";
        /// Counts an attempt to own a session.
        pub claimed: Counter [reason: ClaimReason, outcome: ClaimOutcome]
            = "shoal.session.claims", "{claim}", "Attempts to become a session's owner.";
        /// Records a take-over's duration.
        pub taken_over: Histogram(WAIT_SECONDS) [outcome: TakeOver]
            = "shoal.session.takeover.duration", "s",
            "Time to take over a lost node's session, until its calls resume.";
        /// Counts a hand-over.
        pub handed_over: Counter [outcome: HandOverOutcome]
            = "shoal.session.handovers", "{session}", "Sessions handed over while draining.";
    }
}

labels! {
    /// The state of a session.
    SessionState: STATE {
        /// In memory.
        Active = "active",
        /// Only in the store, until the next message.
        Passive = "passive",
    }
}

labels! {
    /// Why a session ended.
    EndReason: REASON {
        /// By the client.
        Deleted = "deleted",
        /// Unused for `session.idle`.
        Expired = "expired",
        /// Operator.
        Operator = "operator",
        /// To another owner.
        Lost = "lost",
    }
}

labels! {
    /// Why a node claimed a session.
    ClaimReason: REASON {
        /// Created.
        Created = "created",
        /// By a message, after passivation.
        Woken = "woken",
        /// From an owner that released it, or whose lease ended.
        TakenOver = "taken_over",
        /// Before the lease ended, because its owner is provably gone.
        Evidence = "evidence",
        /// By this draining node, for an unused session that it keeps in memory, to release it to other nodes.
        HandedOver = "handed_over",
    }
}

labels! {
    /// How a claim ended.
    ClaimOutcome: OUTCOME {
        /// Won.
        Won = "won",
        /// Another node owns it.
        Held = "held",
        /// The session has ended.
        Gone = "gone",
        /// No answer from the store.
        Failed = "failed",
    }
}

labels! {
    /// How a take-over ended.
    TakeOver: OUTCOME {
        /// Done.
        Done = "done",
        /// Another node was first.
        Lost = "lost",
        /// The session's next message tries again.
        Failed = "failed",
    }
}

labels! {
    /// How a hand-over ended.
    HandOverOutcome: OUTCOME {
        /// To the first node that claims the session.
        Released = "released",
        /// Session is free when the node's lease ends.
        Failed = "failed",
    }
}
