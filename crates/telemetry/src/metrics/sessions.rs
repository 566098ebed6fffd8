//! Legacy sessions: their number, their owners, and their moves.

use super::area::area;
use super::definition::WAIT_SECONDS;
use super::labels::{OUTCOME, REASON, STATE, labels};

area! {
    /// Legacy sessions.
    SessionMetrics {
        /// How many sessions this node holds in each state.
        pub observe_held: UpDownCounter(u64) [state: SessionState]
            = "shoal.session.held", "{session}", "Sessions that this node owns.";
        /// A session began. [`McpMetrics::session_ended`](super::McpMetrics::session_ended) records how long it lived.
        pub created: Counter []
            = "shoal.session.created", "{session}", "Sessions created.";
        /// A session ended.
        pub ended: Counter [reason: EndReason]
            = "shoal.session.ended", "{session}", "Sessions ended.";
        /// An idle session was let go of.
        pub passivated: Counter []
            = "shoal.session.passivations", "{session}",
            "Idle sessions moved from memory to the store.";
        /// This node asked to become the owner.
        pub claimed: Counter [reason: ClaimReason, outcome: ClaimOutcome]
            = "shoal.session.claims", "{claim}", "Attempts to become a session's owner.";
        /// A take-over is over.
        pub taken_over: Histogram(WAIT_SECONDS) [outcome: TakeOver]
            = "shoal.session.takeover.duration", "s",
            "Takeover of a lost node's session, until its calls resume.";
        /// A hand-over is over.
        pub handed_over: Counter [outcome: HandOverOutcome]
            = "shoal.session.handovers", "{session}", "Sessions handed over while draining.";
    }
}

labels! {
    /// The state of a session.
    SessionState: STATE {
        /// In memory. Its actor runs while requests come.
        Active = "active",
        /// Stored until the next message.
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
        /// A new session.
        Created = "created",
        /// A message for a passivated session.
        Woken = "woken",
        /// The owner's lease has ended, or the owner gave the session away.
        TakenOver = "taken_over",
        /// The owner's lease lives, but this node has evidence that the owner is gone.
        Evidence = "evidence",
        /// This node drains, and wakes the session only to give it away.
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
        /// It failed; the next message tries again.
        Failed = "failed",
    }
}

labels! {
    /// How a hand-over ended.
    HandOverOutcome: OUTCOME {
        /// In the store, for the first node that claims it.
        Released = "released",
        /// It failed. The end of the lease frees the session.
        Failed = "failed",
    }
}
