//! One reader of one call, as its node keeps it while links come and go.

mod frames;
mod line;

use std::task::{Context, Poll};

use parking_lot::Mutex;
use shoal_ports::{AskId, Call, CallFailure, CallId, Durability};
use shoal_protocol::TraceContext;

use self::line::{Line, Stage};
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
    line: Mutex<Line>,
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
            line: Mutex::new(Line::new(begin, last, link)),
        }
    }

    /// The worker runs the call.
    pub(super) fn accepted(&self, link: u64) {
        self.change(Some(link), Line::run);
    }

    /// Takes an event in. One that is known already is left out. The reader may be `most` behind.
    pub(super) fn event(&self, link: u64, event: wire::Event, most: u64) -> Arrived {
        let end = event::is_end(&event);
        let mut arrived = Arrived::More;
        self.change(Some(link), |line| {
            if event.sequence <= line.last && !end {
                return;
            }
            line.run();
            line.last = event.sequence;
            if line.reader {
                if line.unread > most {
                    arrived = Arrived::TooMuch;
                }
                line.push(event);
            }
            if end {
                line.end("the call has ended");
                arrived = Arrived::Last;
            }
        });
        arrived
    }

    /// Whether another reader has the call now.
    pub(super) fn is_replaced(&self) -> bool {
        self.line.lock().replaced
    }

    /// Nothing more comes; whether that is news.
    pub(super) fn over(&self, link: u64, failure: CallFailure) -> bool {
        self.change(Some(link), |line| line.over(failure))
    }

    /// Nothing more comes, perhaps because another reader has the call now; whether that is news.
    pub(super) fn lost(&self, link: u64, replaced: bool) -> bool {
        let reason = "another reader has taken the call over, or this one was too slow";
        let reason = reason.to_owned();
        self.change(Some(link), |line| {
            line.replaced = replaced;
            line.over(CallFailure::OutcomeUnknown { reason });
        })
    }

    /// The way to the worker broke for good.
    pub(super) fn broken(&self, worker: &str) {
        let line = self.line.lock();
        let started = line.sent || !matches!(line.stage, Stage::Opening(Begin::Start(_)));
        drop(line);
        let failure = if started {
            CallFailure::OutcomeUnknown {
                reason: format!("the way to its worker {worker} broke"),
            }
        } else {
            CallFailure::NotExecuted {
                reason: format!("its worker {worker} did not come back"),
            }
        };
        self.change(None, |line| line.over(failure));
    }

    /// Whether it ends with its link: the call can be run elsewhere, and nobody has heard of it.
    pub(super) fn ends_with_link(&self) -> bool {
        self.repeatable && self.line.lock().last == 0
    }

    /// An answer has arrived; whether the flight is over with that.
    pub(super) fn answer_taken(&self, ask: AskId, open: bool) -> bool {
        let mut line = self.line.lock();
        let at = line.answers.iter().position(|answer| answer.ask == ask);
        let answer = at.map(|at| line.answers.swap_remove(at));
        let left = answer.is_some() && line.is_left();
        drop(line);
        if let Some(answer) = answer {
            // Whoever does not wait does not want to know.
            let _ = answer.taken.send(open);
        }
        left
    }

    /// Lets go of the flight.
    pub(super) fn leave(&self, holder: Holder) -> Left {
        let mut line = self.line.lock();
        line.reader &= holder == Holder::Steer;
        line.steer &= holder == Holder::Reader;
        if line.is_over() || line.reader {
            return Left::Held;
        }
        line.first = None;
        line.more.clear();
        line.unread = 0;
        if line.is_left() {
            Left::Empty
        } else {
            Left::Steered
        }
    }

    /// Whether the call is to be stopped, and nobody else will see to it.
    pub(super) fn is_cancelled(&self) -> bool {
        self.line.lock().cancelled.is_some()
    }

    /// Returns when the worker has said something: an event, if one came; or why nothing will.
    pub(super) fn poll_opened(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<wire::Event>, CallFailure>> {
        let mut line = self.line.lock();
        if let Some(event) = &line.first {
            // An end that comes alone is all that there is to read.
            let alone = event.sequence == 1 && event::is_end(event);
            return Poll::Ready(Ok(if alone { line.first.take() } else { None }));
        }
        match &line.stage {
            Stage::Opening(_) => {
                line.wait(cx);
                Poll::Pending
            }
            Stage::Running => Poll::Ready(Ok(None)),
            Stage::Over(failure) => Poll::Ready(Err(failure.clone())),
        }
    }

    /// The next event for the reader, and the credit to grant for what was read.
    pub(super) fn poll_event(
        &self,
        credit: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(wire::Event, Option<u64>)>> {
        let mut line = self.line.lock();
        let Some(event) = line.first.take() else {
            if line.is_over() {
                return Poll::Ready(None);
            }
            line.wait(cx);
            return Poll::Pending;
        };
        line.first = line.more.pop_front();
        let cost = event::event_cost(&event);
        line.unread = line.unread.saturating_sub(cost);
        let grant = match line.stage {
            Stage::Over(_) => None,
            _ => line.taken.add(cost, credit),
        };
        Poll::Ready(Some((event, grant)))
    }

    /// Changes the line and wakes whoever waits for a change, unless the flight is over or on another link
    /// than the one that this comes from. Whether it was changed.
    fn change(&self, link: Option<u64>, change: impl FnOnce(&mut Line)) -> bool {
        let mut line = self.line.lock();
        if line.is_over() || link.is_some_and(|link| link != line.link) {
            return false;
        }
        change(&mut line);
        let waker = line.waker.take();
        drop(line);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

#[cfg(test)]
mod tests;
