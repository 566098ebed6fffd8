//! Legacy sessions: their number, their owners, and their moves.

use super::area::area;
use super::definition::WAIT_SECONDS;
use super::labels::{OUTCOME, REASON, STATE, labels};

area! {
    /// The metrics of legacy sessions.
    SessionMetrics {
        /// Observes how many sessions this node holds, by state.
        pub observe_held: UpDownCounter(u64) [state: SessionState]
            = "shoal.session.held", "{session}", "Sessions that this node owns.";
        /// Counts a new session. [`McpMetrics::session_ended`](super::McpMetrics::session_ended) records the lifetime.
        pub created: Counter []
            = "shoal.session.created", "{session}", "Sessions created.";
        /// Counts a session that ended.
        pub ended: Counter [reason: EndReason]
            = "shoal.session.ended", "{session}", "Sessions ended.";
        /// Counts an idle session that was passivated.
        pub passivated: Counter []
            = "shoal.session.passivations", "{session}",
            "Idle sessions moved from memory to the store.";
        /// Counts an attempt to become the owner of a session.
        pub claimed: Counter [reason: ClaimReason, outcome: ClaimOutcome]
            = "shoal.session.claims", "{claim}", "Attempts to become a session's owner.";
        /// Records how long a take-over took.
        pub taken_over: Histogram(WAIT_SECONDS) [outcome: TakeOver]
            = "shoal.session.takeover.duration", "s",
            "Takeover of a lost node's session, until its calls resume.";
        /// Counts a hand-over.
        pub handed_over: Counter [outcome: HandOverOutcome]
            = "shoal.session.handovers", "{session}", "Sessions handed over while draining.";
    }
}

labels! {
    /// The state of a session.
    SessionState: STATE {
        /// The session is in memory. Its actor runs while requests come.
        Active = "active",
        /// The session is stored until its next message.
        Passive = "passive",
    }
}

labels! {
    /// Why a session ended.
    EndReason: REASON {
        /// The client deleted it.
        Deleted = "deleted",
        /// The session was not used for too long.
        Expired = "expired",
        /// An operator ended it.
        Operator = "operator",
        /// Another node owns it now.
        Lost = "lost",
    }
}

labels! {
    /// Why a node claimed a session.
    ClaimReason: REASON {
        /// The session is new.
        Created = "created",
        /// A message arrived for a passivated session.
        Woken = "woken",
        /// The owner's lease has ended, or the owner released the session.
        TakenOver = "taken_over",
        /// The owner's lease lasts, but this node has evidence that the owner is gone.
        Evidence = "evidence",
        /// This node is draining, and wakes the session only to release it.
        HandedOver = "handed_over",
    }
}

labels! {
    /// How a claim ended.
    ClaimOutcome: OUTCOME {
        /// This node is the owner.
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
        /// The session continues here.
        Done = "done",
        /// Another node was first.
        Lost = "lost",
        /// It failed, and the next message tries again.
        Failed = "failed",
    }
}

labels! {
    /// How a hand-over ended.
    HandOverOutcome: OUTCOME {
        /// The session is in the store, for the first node that claims it.
        Released = "released",
        /// The hand-over failed. The end of the lease frees the session.
        Failed = "failed",
    }
}
