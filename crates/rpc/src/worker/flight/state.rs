//! What a flight knows: what has come, what was read, and what the worker has yet to hear.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use shoal_ports::{AskId, CallFailure};
use shoal_protocol::Outcome;
use tokio::sync::oneshot;

use super::Begin;
use crate::convert::event::event_cost;
use crate::link::credit::Taken;
use crate::proto::worker::v1::Event;

/// What a flight knows.
pub(super) struct FlightState {
    pub(super) stage: Stage,
    /// The link that it is on. What an earlier one still brings is out of date: the worker has been asked
    /// anew for all that it may bring.
    pub(super) link: u64,
    /// Whether the worker may have been told of the flight.
    pub(super) sent: bool,
    /// Events that have not been read. One alone needs no queue.
    pub(super) first: Option<Event>,
    pub(super) more: VecDeque<Event>,
    /// What the unread events cost.
    pub(super) unread: u64,
    /// The number of the last event that arrived.
    pub(super) last: u64,
    pub(super) taken: Taken,
    pub(super) waker: Option<Waker>,
    /// Answers that the worker has not acknowledged.
    pub(super) answers: Vec<Unacknowledged>,
    /// The requests that were answered: a second answer is none.
    pub(super) answered: Vec<AskId>,
    pub(super) cancelled: Option<String>,
    /// Whether another reader has the call now.
    pub(super) replaced: bool,
    /// Who still holds the flight: the reader of its events, and whoever steers it.
    pub(super) reader: bool,
    pub(super) steer: bool,
}

/// How far a flight is.
pub(super) enum Stage {
    /// The worker has said nothing yet.
    Opening(Begin),
    /// The call runs.
    Running,
    /// Nothing more comes; why not, when nothing came at all.
    Over(CallFailure),
}

/// An answer that the worker has not acknowledged.
pub(super) struct Unacknowledged {
    pub(super) ask: AskId,
    pub(super) outcome: Outcome,
    pub(super) taken: oneshot::Sender<bool>,
}

impl FlightState {
    /// Of a flight that begins, after event `last`.
    pub(super) fn new(begin: Begin, last: u64, link: u64) -> Self {
        Self {
            link,
            stage: Stage::Opening(begin),
            sent: false,
            first: None,
            more: VecDeque::new(),
            unread: 0,
            last,
            taken: Taken::default(),
            waker: None,
            answers: Vec::new(),
            answered: Vec::new(),
            cancelled: None,
            replaced: false,
            reader: true,
            steer: true,
        }
    }

    /// Whether nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    pub(super) fn run(&mut self) {
        if matches!(self.stage, Stage::Opening(_)) {
            self.stage = Stage::Running;
        }
    }

    pub(super) fn end(&mut self, reason: &str) {
        let reason = reason.to_owned();
        self.over(CallFailure::OutcomeUnknown { reason });
    }

    pub(super) fn over(&mut self, failure: CallFailure) {
        self.stage = Stage::Over(failure);
        // Their waiters hear that nothing was open any more.
        self.answers.clear();
    }

    pub(super) fn push(&mut self, event: Event) {
        self.unread += event_cost(&event);
        if self.first.is_none() {
            self.first = Some(event);
        } else {
            self.more.push_back(event);
        }
    }

    /// Whether nobody holds the flight, and nothing is due that the worker must hear of.
    pub(super) fn is_left(&self) -> bool {
        !self.reader && !self.steer && self.answers.is_empty()
    }

    pub(super) fn wait(&mut self, cx: &mut Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}
