use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use shoal_ports::{AskId, CallFailure};
use tokio::sync::oneshot;

use crate::convert::event::{event_cost, is_end, is_stop};
use crate::link::credit::UngrantedCredit;
use crate::proto::worker::v1::Event;

pub(super) struct LinkedCall {
    pub(super) number: u64,
    /// Whether the flight starts a call, which adds to the worker's load.
    pub(super) is_start: bool,
    state: Mutex<LinkedCallState>,
}

struct LinkedCallState {
    stage: CallStage,
    name: Option<u64>,
    first: Option<Event>,
    more: VecDeque<Event>,
    unread: u64,
    taken: UngrantedCredit,
    waker: Option<Waker>,
    /// Sent answers that the worker has not acknowledged.
    answers: Vec<(AskId, oneshot::Sender<bool>)>,
    replaced: bool,
    stopping: bool,
    /// Dropped when the tool has stopped or the link breaks, which tells the receivers.
    until_over: Vec<oneshot::Sender<()>>,
    /// Whether the call's events are read, and whether the call is controlled.
    reader: bool,
    steer: bool,
}

enum CallStage {
    Opening,
    Running,
    Refused(CallFailure),
    Ended,
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    More,
    Last,
    TooMuch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Reader,
    Steer,
    Both,
}

/// How a flight is used after its events or its control were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Held,
    Steered,
    Empty,
}

impl LinkedCall {
    pub(super) fn new(number: u64, is_start: bool) -> Self {
        Self {
            number,
            is_start,
            state: Mutex::new(LinkedCallState {
                stage: CallStage::Opening,
                name: None,
                first: None,
                more: VecDeque::new(),
                unread: 0,
                taken: UngrantedCredit::default(),
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

    /// `name` is the worker's name for this reader, or 0.
    pub(super) fn accepted(&self, name: u64) {
        self.change(|state| state.run(name));
    }

    /// The reader may be `most` bytes behind. With `tells_stops`, the flight stays until the worker
    /// reports that the stopped call's tool has stopped.
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

    pub(super) fn refused(&self, failure: CallFailure) {
        self.over(CallStage::Refused(failure), false);
    }

    /// Called if the link broke, the reader was too slow, or another reader took the call.
    pub(super) fn broken(&self, replaced: bool) {
        self.over(CallStage::Broken, replaced);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// `None` if the tool has stopped, or if the worker does not report this.
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
            state.answers.clear();
        });
    }

    pub(super) fn is_replaced(&self) -> bool {
        self.state.lock().replaced
    }

    pub(super) fn name(&self) -> Option<u64> {
        self.state.lock().name
    }

    /// The receiver gets whether the answered question was open. `None` if the call has ended or another reader
    /// replaced this one.
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

    pub(super) fn answer_taken(&self, ask: AskId, open: bool) {
        let mut state = self.state.lock();
        let at = state.answers.iter().position(|(known, _)| *known == ask);
        if let Some(at) = at {
            let _ = state.answers.swap_remove(at).1.send(open);
        }
    }

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

    /// Returns the worker's refusal, or the call's end if no other event came before.
    pub(super) fn poll_opened(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Event>, CallFailure>> {
        let mut state = self.state.lock();
        if let Some(event) = &state.first {
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

    /// Returns any credit to grant the worker.
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

    fn change(&self, change: impl FnOnce(&mut LinkedCallState)) {
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

impl LinkedCallState {
    fn is_over(&self) -> bool {
        !matches!(self.stage, CallStage::Opening | CallStage::Running)
    }

    fn run(&mut self, name: u64) {
        self.stage = CallStage::Running;
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
