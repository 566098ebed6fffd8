//! One reader of one call, as its node keeps it while links come and go.

mod frames;
mod state;

use std::task::{Context, Poll};

use parking_lot::Mutex;
use shoal_ports::{AskId, Call, CallFailure, CallId, Durability};
use shoal_protocol::TraceContext;

use self::state::{FlightState, Stage};
use crate::convert::event;
use crate::proto::worker::v1 as wire;

/// How a flight begins.
pub(super) enum Begin {
    /// By running a call.
    Start(Box<Call>),
    /// By attaching to one after an event.
    Attach(CallId, u64, Option<TraceContext>),
}

/// One reader of one call.
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) call: CallId,
    /// Whether it counts as one more call on the worker.
    pub(super) is_start: bool,
    repeatable: bool,
    state: Mutex<FlightState>,
}

/// What an event was to its flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// One of many.
    More,
    /// The last.
    Last,
    /// More than the worker was allowed to send.
    TooMuch,
}

/// Who lets go of a flight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Reader,
    Steer,
    Both,
}

/// What the worker has to know when somebody has let go of a flight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing.
    Held,
    /// That events are not read any more.
    Steered,
    /// That the flight is over.
    Empty,
}

impl Flight {
    /// A flight that is opened on a link (0: none yet).
    pub(super) fn new(number: u64, begin: Begin, link: u64) -> Self {
        let (call, is_start, repeatable, last) = match &begin {
            Begin::Start(call) => {
                let repeatable = call.durability == Durability::Repeatable;
                (call.id, true, repeatable, 0)
            }
            Begin::Attach(call, after, _) => (*call, false, false, *after),
        };
        Self {
            number,
            call,
            is_start,
            repeatable,
            state: Mutex::new(FlightState::new(begin, last, link)),
        }
    }

    /// The worker runs the call.
    pub(super) fn accepted(&self, link: u64) {
        self.change(Some(link), FlightState::run);
    }

    /// Takes an event in. One that is known already is left out. The reader may be `most` behind.
    pub(super) fn event(&self, link: u64, event: wire::Event, most: u64) -> Arrived {
        let end = event::is_end(&event);
        let mut arrived = Arrived::More;
        self.change(Some(link), |state| {
            if event.sequence <= state.last && !end {
                return;
            }
            state.run();
            state.last = event.sequence;
            if state.reader {
                if state.unread > most {
                    arrived = Arrived::TooMuch;
                }
                state.push(event);
            }
            if end {
                state.end("the call has ended");
                arrived = Arrived::Last;
            }
        });
        arrived
    }

    /// Whether another reader has the call now.
    pub(super) fn is_replaced(&self) -> bool {
        self.state.lock().replaced
    }

    /// Nothing more comes; whether that is news.
    pub(super) fn over(&self, link: u64, failure: CallFailure) -> bool {
        self.change(Some(link), |state| state.over(failure))
    }

    /// Nothing more comes, perhaps because another reader has the call now; whether that is news.
    pub(super) fn lost(&self, link: u64, replaced: bool) -> bool {
        let reason = "another reader has taken the call over, or this one was too slow";
        let reason = reason.to_owned();
        self.change(Some(link), |state| {
            state.replaced = replaced;
            state.over(CallFailure::OutcomeUnknown { reason });
        })
    }

    /// The way to the worker broke for good.
    pub(super) fn broken(&self, worker: &str) {
        let state = self.state.lock();
        let started = state.sent || !matches!(state.stage, Stage::Opening(Begin::Start(_)));
        drop(state);
        let failure = if started {
            CallFailure::OutcomeUnknown {
                reason: format!("the way to its worker {worker} broke"),
            }
        } else {
            CallFailure::NotExecuted {
                reason: format!("its worker {worker} did not come back"),
            }
        };
        self.change(None, |state| state.over(failure));
    }

    /// Whether it ends with its link: the call can be run elsewhere, and nobody has heard of it.
    pub(super) fn ends_with_link(&self) -> bool {
        self.repeatable && self.state.lock().last == 0
    }

    /// An answer has arrived; whether the flight is over with that.
    pub(super) fn answer_taken(&self, ask: AskId, open: bool) -> bool {
        let mut state = self.state.lock();
        let at = state.answers.iter().position(|answer| answer.ask == ask);
        let answer = at.map(|at| state.answers.swap_remove(at));
        let left = answer.is_some() && state.is_left();
        drop(state);
        if let Some(answer) = answer {
            // Whoever does not wait does not want to know.
            let _ = answer.taken.send(open);
        }
        left
    }

    /// Lets go of the flight.
    pub(super) fn leave(&self, holder: Holder) -> Left {
        let mut state = self.state.lock();
        state.reader &= holder == Holder::Steer;
        state.steer &= holder == Holder::Reader;
        if state.is_over() || state.reader {
            return Left::Held;
        }
        state.first = None;
        state.more.clear();
        state.unread = 0;
        if state.is_left() {
            Left::Empty
        } else {
            Left::Steered
        }
    }

    /// Whether the call is to be stopped, and nobody else will see to it.
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled.is_some()
    }

    /// Returns when the worker has said something: an event, if one came; or why nothing will.
    pub(super) fn poll_opened(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<wire::Event>, CallFailure>> {
        let mut state = self.state.lock();
        if let Some(event) = &state.first {
            // An end that comes alone is all that there is to read.
            let alone = event.sequence == 1 && event::is_end(event);
            return Poll::Ready(Ok(if alone { state.first.take() } else { None }));
        }
        match &state.stage {
            Stage::Opening(_) => {
                state.wait(cx);
                Poll::Pending
            }
            Stage::Running => Poll::Ready(Ok(None)),
            // The worker has the call. That somebody else reads it is for whoever goes on with it to judge.
            Stage::Over(_) if state.replaced => Poll::Ready(Ok(None)),
            Stage::Over(failure) => Poll::Ready(Err(failure.clone())),
        }
    }

    /// The next event for the reader, and the credit to grant for what was read.
    pub(super) fn poll_event(
        &self,
        credit: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(wire::Event, Option<u64>)>> {
        let mut state = self.state.lock();
        let Some(event) = state.first.take() else {
            if state.is_over() {
                return Poll::Ready(None);
            }
            state.wait(cx);
            return Poll::Pending;
        };
        state.first = state.more.pop_front();
        let cost = event::event_cost(&event);
        state.unread = state.unread.saturating_sub(cost);
        let grant = match state.stage {
            Stage::Over(_) => None,
            _ => state.taken.add(cost, credit),
        };
        Poll::Ready(Some((event, grant)))
    }

    /// Changes the line and wakes whoever waits for a change, unless the flight is over or on another link
    /// than the one that this comes from. Whether it was changed.
    fn change(&self, link: Option<u64>, change: impl FnOnce(&mut FlightState)) -> bool {
        let mut state = self.state.lock();
        if state.is_over() || link.is_some_and(|link| link != state.link) {
            return false;
        }
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

#[cfg(test)]
mod tests;
