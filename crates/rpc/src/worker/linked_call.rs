//! One reader of one call, as its node keeps it for as long as its link holds.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use shoal_ports::{AskId, CallFailure};
use tokio::sync::oneshot;

use crate::convert::event::{event_cost, is_end, is_stop};
use crate::link::credit::Taken;
use crate::proto::worker::v1::Event;

/// One reader of one call.
pub(super) struct LinkedCall {
    pub(super) number: u64,
    /// Whether it counts as one more call on the worker.
    pub(super) is_start: bool,
    state: Mutex<State>,
}

struct State {
    stage: CallStage,
    /// What the worker calls this reader.
    name: Option<u64>,
    /// Events that have not been read. One alone needs no queue.
    first: Option<Event>,
    more: VecDeque<Event>,
    /// What the unread events cost.
    unread: u64,
    taken: Taken,
    waker: Option<Waker>,
    /// Answers that the worker has not acknowledged.
    answers: Vec<(AskId, oneshot::Sender<bool>)>,
    /// Whether another reader has the call now.
    replaced: bool,
    /// Whether the call has ended, and the worker has yet to say that its tool has stopped.
    stopping: bool,
    /// Dropped when nothing of the call runs any more, or the link breaks.
    until_over: Vec<oneshot::Sender<()>>,
    /// Who still holds the flight: the reader of its events, and whoever steers it.
    reader: bool,
    steer: bool,
}

/// How far a flight is.
enum CallStage {
    /// The worker has said nothing yet.
    Opening,
    /// The call runs.
    Running,
    /// It does not run there.
    Refused(CallFailure),
    /// The call has ended.
    Ended,
    /// Nothing more comes, and whoever wants to know goes on by another flight.
    Broken,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing.
    Held,
    /// That events are not read any more.
    Steered,
    /// That the flight is over.
    Empty,
}

impl LinkedCall {
    pub(super) fn new(number: u64, is_start: bool) -> Self {
        Self {
            number,
            is_start,
            state: Mutex::new(State {
                stage: CallStage::Opening,
                name: None,
                first: None,
                more: VecDeque::new(),
                unread: 0,
                taken: Taken::default(),
                waker: None,
                answers: Vec::new(),
                replaced: false,
                stopping: false,
                until_over: Vec::new(),
                reader: true,
                steer: true,
            }),
        }
    }

    /// The worker runs the call, which this reader reads under this name; 0 if it names none.
    pub(super) fn accepted(&self, name: u64) {
        self.change(|state| state.run(name));
    }

    /// Takes an event in. The reader may be `most` behind. The flight of a call that was stopped goes on after the call's end if
    /// the worker `tells_stops`.
    pub(super) fn event(&self, event: Event, most: u64, tells_stops: bool) -> Arrived {
        let mut arrived = Arrived::More;
        self.change(|state| {
            state.run(event.reader);
            let end = is_end(&event);
            state.stopping = tells_stops && is_stop(&event);
            if state.reader {
                if state.unread > most {
                    arrived = Arrived::TooMuch;
                }
                state.push(event);
            }
            if end {
                state.stage = CallStage::Ended;
                // What has not arrived by now met no open request.
                for (_, taken) in state.answers.drain(..) {
                    let _ = taken.send(false);
                }
                if !state.stopping {
                    state.until_over.clear();
                    arrived = Arrived::Last;
                }
            }
        });
        arrived
    }

    /// The worker does not run the call.
    pub(super) fn refused(&self, failure: CallFailure) {
        self.over(CallStage::Refused(failure), false);
    }

    /// Its events end without the call's end: the link broke, this reader was too slow, or another one has the call.
    pub(super) fn broken(&self, replaced: bool) {
        self.over(CallStage::Broken, replaced);
    }

    /// Whether the call has ended, and its tool may run on.
    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Waits until nothing of the call runs any more; `None` if nothing runs, or the worker does not tell.
    pub(super) fn until_over(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.state.lock();
        if state.is_over() && !state.stopping {
            return None;
        }
        let (over, until_over) = oneshot::channel();
        state.until_over.push(over);
        Some(until_over)
    }

    fn over(&self, stage: CallStage, replaced: bool) {
        {
            let mut state = self.state.lock();
            state.stopping = false;
            state.until_over.clear();
        }
        self.change(|state| {
            state.stage = stage;
            state.replaced = replaced;
            // Whether they have arrived, nobody knows here.
            state.answers.clear();
        });
    }

    /// Whether another reader has the call now.
    pub(super) fn is_replaced(&self) -> bool {
        self.state.lock().replaced
    }

    /// What the worker calls this reader.
    pub(super) fn name(&self) -> Option<u64> {
        self.state.lock().name
    }

    /// Notes that an answer is sent, whose fate is told if the worker tells it. `None` when the call has ended, or another
    /// reader has it.
    pub(super) fn answers(&self, ask: AskId) -> Option<oneshot::Receiver<bool>> {
        let mut state = self.state.lock();
        let (taken, fate) = oneshot::channel();
        match state.stage {
            CallStage::Ended => return None,
            CallStage::Broken if state.replaced => return None,
            CallStage::Opening | CallStage::Running => state.answers.push((ask, taken)),
            CallStage::Refused(_) | CallStage::Broken => {}
        }
        Some(fate)
    }

    /// An answer has arrived.
    pub(super) fn answer_taken(&self, ask: AskId, open: bool) {
        let mut state = self.state.lock();
        let at = state.answers.iter().position(|(known, _)| *known == ask);
        if let Some(at) = at {
            // Whoever does not wait does not want to know.
            let _ = state.answers.swap_remove(at).1.send(open);
        }
    }

    /// Lets go of the flight.
    pub(super) fn leave(&self, holder: Holder) -> Left {
        let mut state = self.state.lock();
        let was_read = state.reader;
        state.reader &= holder == Holder::Steer;
        state.steer &= holder == Holder::Reader;
        if state.is_over() || state.reader {
            return Left::Held;
        }
        state.first = None;
        state.more.clear();
        state.unread = 0;
        match state.steer {
            true if was_read => Left::Steered,
            true => Left::Held,
            false => Left::Empty,
        }
    }

    /// Returns when the worker has said something: an event, if one came.
    ///
    /// # Errors
    /// What the worker says when the call does not run there.
    pub(super) fn poll_opened(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Event>, CallFailure>> {
        let mut state = self.state.lock();
        if let Some(event) = &state.first {
            // An end that comes alone is all that there is to read.
            let alone = event.sequence == 1 && is_end(event);
            return Poll::Ready(Ok(if alone { state.first.take() } else { None }));
        }
        match &state.stage {
            CallStage::Opening => {
                state.wait(cx);
                Poll::Pending
            }
            CallStage::Refused(failure) => Poll::Ready(Err(failure.clone())),
            CallStage::Running | CallStage::Ended | CallStage::Broken => Poll::Ready(Ok(None)),
        }
    }

    /// The next event for the reader, and the credit to grant for what was read.
    pub(super) fn poll_event(
        &self,
        credit: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(Event, Option<u64>)>> {
        let mut state = self.state.lock();
        let Some(event) = state.first.take() else {
            if state.is_over() {
                return Poll::Ready(None);
            }
            state.wait(cx);
            return Poll::Pending;
        };
        state.first = state.more.pop_front();
        let cost = event_cost(&event);
        state.unread = state.unread.saturating_sub(cost);
        let grant = match state.is_over() {
            true => None,
            false => state.taken.add(cost, credit),
        };
        Poll::Ready(Some((event, grant)))
    }

    /// Changes a flight that is not over, and wakes whoever waits for a change.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        if state.is_over() {
            return;
        }
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl State {
    fn is_over(&self) -> bool {
        !matches!(self.stage, CallStage::Opening | CallStage::Running)
    }

    fn run(&mut self, name: u64) {
        self.stage = CallStage::Running;
        // Said once, with the first word.
        if name > 0 {
            self.name = Some(name);
        }
    }

    fn push(&mut self, event: Event) {
        self.unread += event_cost(&event);
        if self.first.is_none() {
            self.first = Some(event);
        } else {
            self.more.push_back(event);
        }
    }

    fn wait(&mut self, cx: &mut Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

#[cfg(test)]
mod tests;
