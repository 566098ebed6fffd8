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
            = "shoal.session.created", "{session}", "Sessions that this node created.";
        /// Counts an ended session.
        pub ended: Counter [reason: EndReason]
            = "shoal.session.ended", "{session}", "Sessions that ended on this node.";
        /// Counts a passivated session.
        pub passivated: Counter []
            = "shoal.session.passivations", "{session}", "Idle sessions that this node moved from memory to the store.";
        /// Counts an attempt to own a session.
        pub claimed: Counter [reason: ClaimReason, outcome: ClaimOutcome]
            = "shoal.session.claims", "{claim}", "Attempts of this node to become a session's owner.";
        /// Records a take-over's duration.
        pub taken_over: Histogram(WAIT_SECONDS) [outcome: TakeOver]
            = "shoal.session.takeover.duration", "s",
            "Time to take over a session of a lost node, until its calls resume.";
        /// Counts a hand-over.
        pub handed_over: Counter [outcome: HandOverOutcome]
            = "shoal.session.handovers", "{session}", "Sessions that this node handed over while draining.";
    }
}

labels! {
    /// The state of a session.
    SessionState: STATE {
        /// The session is in memory.
        Active = "active",
        /// The session is only in the store, until its next message.
        Passive = "passive",
    }
}

labels! {
    /// Why a session ended.
    EndReason: REASON {
        /// The client deleted the session.
        Deleted = "deleted",
        /// Nobody used the session for `session.idle`.
        Expired = "expired",
        /// An operator ended the session.
        Operator = "operator",
        /// Another node owns the session now.
        Lost = "lost",
    }
}

labels! {
    /// Why a node claimed a session.
    ClaimReason: REASON {
        /// The session is new.
        Created = "created",
        /// A message came for a passivated session.
        Woken = "woken",
        /// The owner's lease has ended, or the owner gave the session away.
        TakenOver = "taken_over",
        /// The owner's lease has not ended, but this node has evidence that the owner is gone.
        Evidence = "evidence",
        /// This node drains, and wakes the session only to give it away.
        HandedOver = "handed_over",
    }
}

labels! {
    /// How a claim ended.
    ClaimOutcome: OUTCOME {
        /// This node is now the owner.
        Won = "won",
        /// Another node is the owner.
        Held = "held",
        /// The session has ended.
        Gone = "gone",
        /// The store did not answer.
        Failed = "failed",
    }
}

labels! {
    /// How a take-over ended.
    TakeOver: OUTCOME {
        /// The session continues on this node.
        Done = "done",
        /// Another node was first.
        Lost = "lost",
        /// The takeover failed. The session's next message tries again.
        Failed = "failed",
    }
}

labels! {
    /// How a hand-over ended.
    HandOverOutcome: OUTCOME {
        /// The session is in the store, for the first node that claims it.
        Released = "released",
        /// The handover failed. The session is free when the node's lease ends.
        Failed = "failed",
    }
}
