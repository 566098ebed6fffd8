//! One reader of one call, as the worker serves it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream as _;
use futures::future::BoxFuture;
use shoal_ports::{
    Answered, AskId, CallControl, CallEvent, CallEvents, CallFailure, CallId, RunningCall, answered,
};
use shoal_protocol::Outcome;
use shoal_telemetry::metrics::{LinkKind, metrics};

use super::readers::Readers;
use crate::link::ready::Bell;

/// Answers whose fates are remembered; a node waits for fewer acknowledgements at a time.
const FATES: usize = 256;

/// One reader of one call.
pub(super) struct Flight {
    stage: Stage,
    call: CallId,
    control: Option<Arc<dyn CallControl>>,
    readers: Arc<Readers>,
    /// The turn among its readers in which the node asked for this one.
    turn: u64,
    cancelled: Option<String>,
    /// The requests that were answered, and whether they were open, once that is known. A node that lost
    /// the acknowledgement sends its answer again.
    answered: Vec<(AskId, Option<bool>)>,
    /// Answers that wait for a control.
    held: Vec<(AskId, Outcome)>,
    /// Whether somebody reads the events.
    reading: bool,
    /// Whether its link broke and the reader has not said yet which events it has.
    parked: bool,
    /// What may be sent.
    credit: i64,
    /// The number of the last event that was sent.
    pub(super) last: u64,
    /// Whether the node has been told anything.
    spoken: bool,
    /// Whether it should have been by now.
    late: bool,
    bell: Arc<Bell>,
    waker: Waker,
}

/// How a call comes to its reader.
pub(super) type Opening = BoxFuture<'static, Result<RunningCall, CallFailure>>;

enum Stage {
    Starting(Opening),
    /// It was refused, and nobody has been told.
    Refusing(CallFailure),
    Reading(CallEvents),
    /// Nobody reads the events, but the call can be steered.
    Steering,
}

/// What came of looking at a flight.
pub(super) enum Step {
    /// Nothing; it rings when there is more.
    Wait,
    /// An event.
    Event(CallEvent),
    /// The call does not run.
    Refused(CallFailure),
    /// The events have ended, whether by the call's end or otherwise.
    Ended,
}

impl Flight {
    pub(super) fn new(
        call: CallId,
        opening: Opening,
        after: u64,
        credit: i64,
        bell: Arc<Bell>,
        readers: Arc<Readers>,
    ) -> Self {
        Self {
            stage: Stage::Starting(opening),
            call,
            control: None,
            turn: readers.turn(),
            readers,
            cancelled: None,
            answered: Vec::new(),
            held: Vec::new(),
            reading: true,
            parked: false,
            credit,
            last: after,
            spoken: false,
            late: false,
            waker: bell.waker(),
            bell,
        }
    }

    /// Has the flight looked at soon.
    pub(super) fn ring(&self) {
        self.bell.ring();
    }

    /// Its link broke: nothing is sent until the reader has come back.
    pub(super) fn park(&mut self) {
        self.parked = true;
    }

    /// Looks for something to say. While it is parked, only its start goes on.
    pub(super) fn poll(&mut self) -> Step {
        let waker = self.waker.clone();
        let mut cx = Context::from_waker(&waker);
        if let Stage::Starting(opening) = &mut self.stage {
            match opening.as_mut().poll(&mut cx) {
                Poll::Pending => return Step::Wait,
                Poll::Ready(Ok(running)) => self.run(running),
                Poll::Ready(Err(failure)) => self.stage = Stage::Refusing(failure),
            }
        }
        if self.parked {
            return Step::Wait;
        }
        let events = match &mut self.stage {
            Stage::Reading(events) if self.credit > 0 => events,
            Stage::Refusing(failure) => return Step::Refused(failure.clone()),
            _ => return Step::Wait,
        };
        match Pin::new(events).poll_next(&mut cx) {
            Poll::Pending => Step::Wait,
            Poll::Ready(Some(event)) => Step::Event(event),
            Poll::Ready(None) => Step::Ended,
        }
    }

    fn run(&mut self, running: RunningCall) {
        if let Some(reason) = &self.cancelled {
            running.control.cancel(reason);
        }
        self.readers.read_by(&running.control);
        self.control = Some(running.control);
        self.stage = if self.reading {
            Stage::Reading(running.events)
        } else {
            Stage::Steering
        };
    }

    /// Whether another reader has the call now, which is not this flight's own.
    pub(super) fn is_replaced(&self) -> bool {
        self.readers.are_replaced()
    }

    /// Whether this flight has another link to the same node, or had, and reads the call by that.
    fn is_read_elsewhere(&self) -> bool {
        let control = self.control.as_ref();
        control.is_some_and(|control| control.is_replaced()) && !self.is_replaced()
    }

    /// The call to attach to again, and after which event, where its events ended here because the same flight was read
    /// by another link meanwhile.
    pub(super) fn goes_on(&self) -> Option<(CallId, u64)> {
        // The node goes on with the link by which it asked last; the other one breaks, or has.
        let asked_last = self.readers.is_turn(self.turn);
        (asked_last && self.reading && self.is_read_elsewhere()).then_some((self.call, self.last))
    }

    /// Reads the call once more, by what `opening` yields.
    pub(super) fn reopen(&mut self, opening: Opening) {
        self.stage = Stage::Starting(opening);
        // It is not heard any more once the call is attached to anew.
        self.control = None;
        self.ring();
    }

    /// Whether the node is to be told now that the call runs: nothing else was said for so long that it `is
    /// late`. One whose start has not returned yet may still be refused.
    pub(super) fn is_to_be_accepted(&mut self, is_late: bool) -> bool {
        self.late |= is_late;
        let starts = matches!(self.stage, Stage::Starting(_));
        self.late && !starts && !std::mem::replace(&mut self.spoken, true)
    }

    /// Counts what was sent.
    pub(super) fn sent(&mut self, sequence: u64, cost: u64) {
        self.spoken = true;
        self.last = sequence;
        let had = self.credit;
        self.credit = had.saturating_sub_unsigned(cost);
        if had > 0 && self.credit <= 0 {
            metrics().rpc.stalled(LinkKind::Worker);
        }
    }

    /// The reader has read something.
    pub(super) fn grant(&mut self, bytes: u64) {
        let dry = self.credit <= 0;
        self.credit = self.credit.saturating_add_unsigned(bytes);
        if dry && self.credit > 0 {
            self.ring();
        }
    }

    /// Passes an answer on; its fate is known later. `None` for one that is on its way already, or has to
    /// wait.
    pub(super) fn answer(&mut self, ask: AskId, outcome: Outcome) -> Option<Answered> {
        if let Some((_, fate)) = self.answered.iter().find(|(known, _)| *known == ask) {
            return fate.map(answered);
        }
        let Some(control) = &self.control else {
            self.held.push((ask, outcome));
            return None;
        };
        self.answered.push((ask, None));
        Some(control.answer(ask, outcome))
    }

    /// The answers that came while the call was attached to anew, once that is done.
    pub(super) fn take_held(&mut self) -> Vec<(AskId, Outcome)> {
        match self.control {
            Some(_) => std::mem::take(&mut self.held),
            None => Vec::new(),
        }
    }

    /// The fates of its answers, of a flight that is over.
    pub(super) fn into_fates(self) -> Vec<(AskId, bool)> {
        let fates = self.answered.into_iter();
        fates.filter_map(|(ask, open)| Some((ask, open?))).collect()
    }

    /// Remembers the fate of an answer.
    pub(super) fn answered(&mut self, ask: AskId, open: bool) {
        if let Some((_, fate)) = self.answered.iter_mut().find(|(known, _)| *known == ask) {
            *fate = Some(open);
        }
        // The node knows the fates of most of them by now; it sends again what it does not know.
        if self.answered.len() > FATES {
            let known = self.answered.iter().position(|(_, fate)| fate.is_some());
            known.map(|at| self.answered.remove(at));
        }
    }

    pub(super) fn cancel(&mut self, reason: String) {
        if let Some(control) = &self.control {
            control.cancel(&reason);
        }
        self.cancelled = Some(reason);
    }

    /// Lets go of the events.
    pub(super) fn stop_reading(&mut self) {
        self.reading = false;
        if matches!(self.stage, Stage::Reading(_)) {
            self.stage = Stage::Steering;
        }
    }

    /// Whether somebody waits for its events.
    pub(super) fn is_read(&self) -> bool {
        self.reading
    }

    /// Whether another reader has the call now.
    fn is_taken_over(&mut self) -> bool {
        let Stage::Reading(events) = &mut self.stage else {
            return false;
        };
        // The event that this may yield comes again: whoever asks attaches anew.
        let next = Pin::new(events).poll_next(&mut Context::from_waker(Waker::noop()));
        matches!(next, Poll::Ready(None))
    }

    /// Goes on for a reader that has come back and has the events up to `after`; `opening` gets the others
    /// once more, if some were lost. `false` when another reader has the call now.
    pub(super) fn resume(
        &mut self,
        after: u64,
        credit: i64,
        opening: impl FnOnce() -> Opening,
    ) -> bool {
        self.credit = credit;
        self.parked = false;
        let elsewhere = self.is_read_elsewhere();
        if self.last != after || elsewhere {
            if !elsewhere && self.is_taken_over() {
                return false;
            }
            self.reopen(opening());
            self.last = after;
        }
        self.turn = self.readers.turn();
        self.spoken = false;
        self.late = false;
        self.ring();
        true
    }
}
