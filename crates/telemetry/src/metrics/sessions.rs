//! Legacy sessions: how many there are, who holds them, and how they move.

use super::area::area;
use super::definition::WAIT_SECONDS;
use super::labels::{OUTCOME, REASON, STATE, labels};

area! {
    /// Legacy sessions.
    SessionMetrics {
        /// How many sessions this node holds in each state.
        pub observe_held: UpDownCounter(u64) [state: SessionState]
            = "shoal.session.held", "{session}", "Sessions that this node holds.";
        /// A session began. [`McpMetrics::session_ended`](super::McpMetrics::session_ended) records how long it lived.
        pub created: Counter []
            = "shoal.session.created", "{session}", "Sessions that began at this node.";
        /// A session ended.
        pub ended: Counter [reason: EndReason]
            = "shoal.session.ended", "{session}", "Sessions that ended at this node.";
        /// An idle session was let go of.
        pub passivated: Counter []
            = "shoal.session.passivations", "{session}",
            "Idle sessions that were dropped from memory; the store has their records.";
        /// This node asked to become the owner.
        pub claimed: Counter [reason: ClaimReason, outcome: ClaimOutcome]
            = "shoal.session.claims", "{claim}", "Attempts to become a session's owner.";
        /// A take-over is over.
        pub taken_over: Histogram(WAIT_SECONDS) [outcome: TakeOver]
            = "shoal.session.takeover.duration", "s",
            "Taking a session whose owner is lost, until its running calls are resumed.";
        /// A hand-over is over.
        pub handed_over: Counter [outcome: HandOverOutcome]
            = "shoal.session.handovers", "{session}", "Sessions that this node gave away while draining.";
    }
}

labels! {
    /// What a session is doing.
    SessionState: STATE {
        /// It is in memory; its actor runs while requests come.
        Active = "active",
        /// Its record waits in the store for the next message.
        Passive = "passive",
    }
}

labels! {
    /// Why a session ended.
    EndReason: REASON {
        /// The client deleted it.
        Deleted = "deleted",
        /// Nobody used it for too long.
        Expired = "expired",
        /// An operator ended it.
        Operator = "operator",
        /// Another node is its owner now.
        Lost = "lost",
    }
}

labels! {
    /// Why ownership of a session was asked for.
    ClaimReason: REASON {
        /// A new session.
        Created = "created",
        /// A message for a session that was put away.
        Woken = "woken",
        /// Nobody holds it: its owner's lease has run out, or it gave it away.
        TakenOver = "taken_over",
        /// Its owner's lease lives, but this node has seen that the owner is gone.
        Evidence = "evidence",
        /// This node drains, and wakes one of its own only to give it away.
        HandedOver = "handed_over",
    }
}

labels! {
    /// How a claim ended.
    ClaimOutcome: OUTCOME {
        /// This node is the owner.
        Won = "won",
        /// Another node is.
        Held = "held",
        /// The session has ended.
        Gone = "gone",
        /// The store could not be asked.
        Failed = "failed",
    }
}

labels! {
    /// How a take-over ended.
    TakeOver: OUTCOME {
        /// The session goes on here.
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
        /// It is in the store for whoever asks for it first.
        Released = "released",
        /// It failed; the lease's end frees the session.
        Failed = "failed",
    }
}
