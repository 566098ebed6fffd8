//! One reader of one call, as its node keeps it while links come and go.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use shoal_ports::{AskId, Call, CallFailure, CallId, Durability};
use shoal_protocol::Outcome;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::convert::call::{call_out, id_out};
use crate::convert::event;
use crate::convert::outcome::answer_out;
use crate::link::credit::Taken;
use crate::proto::worker::v1 as wire;
use crate::proto::worker::v1::node_frame::Frame;

/// How a flight begins.
pub(super) enum Begin {
    /// By running a call.
    Start(Box<Call>),
    /// By attaching to one after an event.
    Attach(CallId, u64),
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

struct Line {
    stage: Stage,
    /// Whether the worker may have been told of the flight.
    sent: bool,
    /// Events that have not been read. One alone needs no queue.
    first: Option<wire::Event>,
    more: VecDeque<wire::Event>,
    /// The number of the last event that arrived.
    last: u64,
    taken: Taken,
    waker: Option<Waker>,
    /// Answers that the worker has not acknowledged.
    answers: Vec<Unacknowledged>,
    cancelled: Option<String>,
    /// Who still holds the flight: the reader of its events, and whoever steers it.
    reader: bool,
    steer: bool,
}

enum Stage {
    /// The worker has said nothing yet.
    Opening(Begin),
    /// The call runs.
    Running,
    /// Nothing more comes; why not, when nothing came at all.
    Over(CallFailure),
}

struct Unacknowledged {
    ask: AskId,
    outcome: Outcome,
    taken: oneshot::Sender<bool>,
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
    pub(super) fn new(number: u64, begin: Begin) -> Self {
        let (call, is_start, repeatable, last) = match &begin {
            Begin::Start(call) => {
                let repeatable = call.durability == Durability::Repeatable;
                (call.id, true, repeatable, 0)
            }
            Begin::Attach(call, after) => (*call, false, false, *after),
        };
        Self {
            number,
            call,
            is_start,
            repeatable,
            line: Mutex::new(Line {
                stage: Stage::Opening(begin),
                sent: false,
                first: None,
                more: VecDeque::new(),
                last,
                taken: Taken::default(),
                waker: None,
                answers: Vec::new(),
                cancelled: None,
                reader: true,
                steer: true,
            }),
        }
    }

    /// The worker runs the call.
    pub(super) fn accepted(&self) {
        self.change(|line| line.run());
    }

    /// Takes an event in; whether it is the last. One that is known already is left out.
    pub(super) fn event(&self, event: wire::Event) -> bool {
        let end = event::is_end(&event);
        self.change(|line| {
            if event.sequence <= line.last && !end {
                return;
            }
            line.run();
            line.last = event.sequence;
            if line.reader {
                line.push(event);
            }
            if end {
                line.end("the call has ended");
            }
        });
        end
    }

    /// Nothing more comes.
    pub(super) fn over(&self, failure: CallFailure) {
        self.change(|line| {
            line.stage = Stage::Over(failure);
            line.answers.clear();
        });
    }

    /// The way to the worker broke for good.
    pub(super) fn broken(&self, worker: &str) {
        let line = self.line.lock();
        let started = line.sent || !matches!(line.stage, Stage::Opening(Begin::Start(_)));
        drop(line);
        self.over(if started {
            CallFailure::OutcomeUnknown {
                reason: format!("the way to its worker {worker} broke"),
            }
        } else {
            CallFailure::NotExecuted {
                reason: format!("its worker {worker} did not come back"),
            }
        });
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

    /// Keeps an answer until it is acknowledged, and makes its frame. `None` when the flight is over.
    pub(super) fn answer(
        &self,
        ask: AskId,
        outcome: Outcome,
        taken: oneshot::Sender<bool>,
    ) -> Option<Frame> {
        let mut line = self.line.lock();
        if matches!(line.stage, Stage::Over(_)) {
            return None;
        }
        let frame = self.answer_frame(ask, outcome.clone());
        line.answers.push(Unacknowledged {
            ask,
            outcome,
            taken,
        });
        Some(frame)
    }

    /// Remembers that the call was cancelled, and makes the frame. `None` when the flight is over.
    pub(super) fn cancel(&self, reason: &str) -> Option<Frame> {
        let mut line = self.line.lock();
        if matches!(line.stage, Stage::Over(_)) {
            return None;
        }
        line.cancelled = Some(reason.to_owned());
        Some(self.cancel_frame(reason))
    }

    /// Lets go of the flight.
    pub(super) fn leave(&self, holder: Holder) -> Left {
        let mut line = self.line.lock();
        line.reader &= holder == Holder::Steer;
        line.steer &= holder == Holder::Reader;
        if matches!(line.stage, Stage::Over(_)) || line.reader {
            return Left::Held;
        }
        line.first = None;
        line.more = VecDeque::new();
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
            if matches!(line.stage, Stage::Over(_)) {
                return Poll::Ready(None);
            }
            line.wait(cx);
            return Poll::Pending;
        };
        line.first = line.more.pop_front();
        let grant = match line.stage {
            Stage::Over(_) => None,
            _ => line.taken.add(event::cost(&event), credit),
        };
        Poll::Ready(Some((event, grant)))
    }

    /// What the worker is told of this flight when it has come back, and whether the flight stays.
    pub(super) fn resume(&self) -> (Vec<Frame>, bool) {
        let mut line = self.line.lock();
        line.taken.reset();
        line.sent = true;
        let first = match &line.stage {
            Stage::Opening(begin) => self.begin_frame(begin),
            Stage::Running if line.reader => self.attach_frame(line.last),
            Stage::Running => self.detach_frame(true),
            Stage::Over(_) => return (Vec::new(), false),
        };
        let answers = line.answers.iter();
        let answers = answers.map(|answer| self.answer_frame(answer.ask, answer.outcome.clone()));
        let mut frames: Vec<_> = std::iter::once(first).chain(answers).collect();
        frames.extend((line.cancelled.as_deref()).map(|reason| self.cancel_frame(reason)));
        let stays = !line.is_left();
        if !stays {
            frames.push(self.detach_frame(false));
        }
        (frames, stays)
    }

    /// The frame that opens the flight; `None` once the worker has answered.
    pub(super) fn opening_frame(&self) -> Option<Frame> {
        let mut line = self.line.lock();
        line.sent = true;
        match &line.stage {
            Stage::Opening(begin) => Some(self.begin_frame(begin)),
            _ => None,
        }
    }

    fn begin_frame(&self, begin: &Begin) -> Frame {
        match begin {
            Begin::Start(call) => Frame::Start(Box::new(wire::Start {
                flight: self.number,
                call: Some(call_out(call, Instant::now())),
            })),
            Begin::Attach(_, after) => self.attach_frame(*after),
        }
    }

    fn attach_frame(&self, after: u64) -> Frame {
        Frame::Attach(wire::Attach {
            flight: self.number,
            call: id_out(self.call),
            after,
        })
    }

    fn answer_frame(&self, ask: AskId, outcome: Outcome) -> Frame {
        Frame::Answer(wire::Answer {
            flight: self.number,
            ask: ask.0,
            outcome: Some(answer_out(outcome)),
        })
    }

    fn cancel_frame(&self, reason: &str) -> Frame {
        Frame::Cancel(wire::Cancel {
            flight: self.number,
            reason: reason.to_owned(),
        })
    }

    pub(super) fn detach_frame(&self, steering: bool) -> Frame {
        Frame::Detach(wire::Detach {
            flight: self.number,
            steering,
        })
    }

    /// Changes the line, unless the flight is over, and wakes whoever waits for a change.
    fn change(&self, change: impl FnOnce(&mut Line)) {
        let mut line = self.line.lock();
        if matches!(line.stage, Stage::Over(_)) {
            return;
        }
        change(&mut line);
        let waker = line.waker.take();
        drop(line);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Line {
    fn run(&mut self) {
        if matches!(self.stage, Stage::Opening(_)) {
            self.stage = Stage::Running;
        }
    }

    fn end(&mut self, reason: &str) {
        let reason = reason.to_owned();
        self.stage = Stage::Over(CallFailure::OutcomeUnknown { reason });
        // Their waiters hear that nothing was open any more.
        self.answers.clear();
    }

    fn push(&mut self, event: wire::Event) {
        if self.first.is_none() {
            self.first = Some(event);
        } else {
            self.more.push_back(event);
        }
    }

    /// Whether nobody holds the flight, and nothing is due that the worker must hear of.
    fn is_left(&self) -> bool {
        !self.reader && !self.steer && self.answers.is_empty()
    }

    fn wait(&mut self, cx: &mut Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}
