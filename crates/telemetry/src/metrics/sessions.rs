//! Legacy sessions: how many there are, who holds them, and how they move.

use std::time::Duration;

use super::definition::{Attribute, Kind, WAIT_SECONDS, definitions};
use super::instrument::{Counter, Factory, Histogram};
use super::labels::{OUTCOME, REASON, STATE, label, labels};
use super::observed::{Observed, Registration};

definitions! {
    SESSIONS = Kind::UpDownCounter, "shoal.session.held", "{session}",
        "Sessions that this node holds.",
        [Attribute::one_of(STATE, SessionState::VALUES)];
    CREATED = Kind::Counter, "shoal.session.created", "{session}",
        "Sessions that began at this node.", [];
    ENDED = Kind::Counter, "shoal.session.ended", "{session}",
        "Sessions that ended at this node.",
        [Attribute::one_of(REASON, EndReason::VALUES)];
    PASSIVATIONS = Kind::Counter, "shoal.session.passivations", "{session}",
        "Idle sessions that were let go of, with their record in the store.", [];
    CLAIMS = Kind::Counter, "shoal.session.claims", "{claim}",
        "Attempts to become a session's owner.",
        [
            Attribute::one_of(REASON, ClaimReason::VALUES),
            Attribute::one_of(OUTCOME, ClaimOutcome::VALUES),
        ];
    TAKE_OVER = Kind::Histogram(WAIT_SECONDS), "shoal.session.takeover.duration", "s",
        "Taking a session whose owner is lost, until its running calls are resumed.",
        [Attribute::one_of(OUTCOME, TakeOver::VALUES)];
    HAND_OVERS = Kind::Counter, "shoal.session.handovers", "{session}",
        "Sessions that this node gave away while draining.",
        [Attribute::one_of(OUTCOME, HandOverOutcome::VALUES)];
}

labels! {
    /// What a session is doing.
    SessionState {
        /// It is in memory; its actor runs while requests come.
        Active = "active",
        /// Its record waits in the store for the next message.
        Passive = "passive",
    }
}

labels! {
    /// Why a session ended.
    EndReason {
        /// The client deleted it.
        Deleted = "deleted",
        /// Nobody used it for too long.
        Expired = "expired",
        /// An operator ended it.
        Operator = "operator",
        /// It broke a limit.
        Limit = "limit",
        /// Another node is its owner now.
        Lost = "lost",
        /// Its state could not be kept.
        Failed = "failed",
    }
}

labels! {
    /// Why ownership of a session was asked for.
    ClaimReason {
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
    ClaimOutcome {
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
    TakeOver {
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
    HandOverOutcome {
        /// Another node holds the session.
        Done = "done",
        /// It is in the store for whoever asks for it first.
        Released = "released",
        /// It failed; the lease's end frees the session.
        Failed = "failed",
    }
}

/// Legacy sessions.
#[derive(Debug)]
pub struct SessionMetrics {
    held: Observed,
    created: Counter,
    ended: Counter,
    passivations: Counter,
    claims: Counter,
    take_over: Histogram,
    hand_overs: Counter,
}

impl SessionMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            held: factory.observed(&SESSIONS),
            created: factory.counter(&CREATED),
            ended: factory.counter(&ENDED),
            passivations: factory.counter(&PASSIVATIONS),
            claims: factory.counter(&CLAIMS),
            take_over: factory.histogram(&TAKE_OVER),
            hand_overs: factory.counter(&HAND_OVERS),
        }
    }

    /// How many sessions this node holds in each state.
    pub fn observe_held(
        &self,
        read: impl Fn(&mut dyn FnMut(SessionState, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.held.by(STATE, read)
    }

    /// A session began. [`McpMetrics::session_ended`](super::McpMetrics::session_ended) records how long it lived.
    pub fn created(&self) {
        self.created.add(1, || []);
    }

    /// A session ended.
    pub fn ended(&self, reason: EndReason) {
        self.ended.add(1, || [label(REASON, reason.as_str())]);
    }

    /// An idle session was let go of.
    pub fn passivated(&self) {
        self.passivations.add(1, || []);
    }

    /// This node asked to become the owner.
    pub fn claimed(&self, reason: ClaimReason, outcome: ClaimOutcome) {
        self.claims.add(1, || {
            [
                label(REASON, reason.as_str()),
                label(OUTCOME, outcome.as_str()),
            ]
        });
    }

    /// A take-over is over.
    pub fn taken_over(&self, duration: Duration, outcome: TakeOver) {
        (self.take_over).record(duration, || [label(OUTCOME, outcome.as_str())]);
    }

    /// A hand-over is over.
    pub fn handed_over(&self, outcome: HandOverOutcome) {
        (self.hand_overs).add(1, || [label(OUTCOME, outcome.as_str())]);
    }
}
