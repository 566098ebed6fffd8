//! One reader of one call, as the worker serves it for as long as the link holds.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream as _;
use futures::future::{BoxFuture, FutureExt as _};
use shoal_ports::{Answered, AskId, CallControl, CallEvent, CallEvents, CallFailure, RunningCall};
use shoal_protocol::Outcome;
use shoal_telemetry::metrics::{LinkKind, metrics};

use crate::link::ready::Bell;

/// One reader of one call.
pub(super) struct ServedCall {
    stage: ReadStage,
    control: Option<Arc<dyn CallControl>>,
    /// Answers of which the node has not been told whether they arrived.
    answers: Vec<(AskId, Answered)>,
    /// Whether somebody reads the events.
    reading: bool,
    /// What may be sent.
    credit: i64,
    /// Whether the node has been told anything.
    spoken: bool,
    /// Whether it should have been by now.
    late: bool,
    bell: Arc<Bell>,
    waker: Waker,
}

/// How a call comes to its reader.
pub(super) type Opening = BoxFuture<'static, Result<RunningCall, CallFailure>>;

enum ReadStage {
    Starting(Opening),
    /// It was refused, and nobody has been told.
    Refused(CallFailure),
    Reading(CallEvents),
    /// Nobody reads the events, but the call can be steered.
    Steering,
}

/// What came of looking at a flight.
pub(super) enum Step {
    /// Nothing; it rings when there is more.
    Wait,
    /// An answer has arrived, and its request was open or not.
    Answered(AskId, bool),
    /// An event.
    Event(CallEvent),
    /// The call does not run.
    Refused(CallFailure),
    /// The events have ended, whether by the call's end or otherwise.
    Ended,
}

impl ServedCall {
    pub(super) fn new(opening: Opening, credit: i64, bell: Arc<Bell>) -> Self {
        Self {
            stage: ReadStage::Starting(opening),
            control: None,
            answers: Vec::new(),
            reading: true,
            credit,
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

    /// Goes on with its start.
    pub(super) fn begin(&mut self) {
        let ReadStage::Starting(opening) = &mut self.stage else {
            return;
        };
        match opening.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => {}
            Poll::Ready(Ok(running)) => {
                self.control = Some(running.control);
                self.stage = match self.reading {
                    true => ReadStage::Reading(running.events),
                    false => ReadStage::Steering,
                };
            }
            Poll::Ready(Err(failure)) => self.stage = ReadStage::Refused(failure),
        }
    }

    /// Looks for something to say.
    pub(super) fn poll(&mut self) -> Step {
        self.begin();
        let waker = self.waker.clone();
        let mut cx = Context::from_waker(&waker);
        for at in 0..self.answers.len() {
            if let Poll::Ready(open) = self.answers[at].1.poll_unpin(&mut cx) {
                return Step::Answered(self.answers.swap_remove(at).0, open);
            }
        }
        let events = match &mut self.stage {
            ReadStage::Reading(events) if self.credit > 0 => events,
            ReadStage::Refused(failure) => return Step::Refused(failure.clone()),
            _ => return Step::Wait,
        };
        match Pin::new(events).poll_next(&mut cx) {
            Poll::Pending => Step::Wait,
            Poll::Ready(Some(event)) => Step::Event(event),
            Poll::Ready(None) => Step::Ended,
        }
    }

    /// Whether another reader has the call now.
    pub(super) fn is_replaced(&self) -> bool {
        (self.control.as_ref()).is_some_and(|control| control.is_replaced())
    }

    /// Waits until nothing of the call runs any more; `None` if nothing runs.
    pub(super) fn over(&self) -> Option<BoxFuture<'static, ()>> {
        self.control.as_ref()?.over()
    }

    /// Whether the node is to be told now that the call runs: nothing else was said for so long that it `is
    /// late`. One whose start has not returned yet may still be refused.
    pub(super) fn is_to_be_accepted(&mut self, is_late: bool) -> bool {
        self.late |= is_late;
        self.late && self.control.is_some() && !self.spoken
    }

    /// The name of the reader, which is said with the first word; 0 after that, and where it has none.
    pub(super) fn introduce(&mut self) -> u64 {
        match (std::mem::replace(&mut self.spoken, true), &self.control) {
            (false, Some(control)) => control.reader().unwrap_or(0),
            _ => 0,
        }
    }

    /// Counts what was sent.
    pub(super) fn sent(&mut self, cost: u64) {
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

    /// Passes an answer on; its fate is the next thing to say.
    pub(super) fn answer(&mut self, ask: AskId, outcome: Outcome) {
        if let Some(control) = &self.control {
            self.answers.push((ask, control.answer(ask, outcome)));
            self.ring();
        }
    }

    /// Answers a question that the node will not see.
    pub(super) fn answer_itself(&self, ask: AskId, outcome: Outcome) {
        if let Some(control) = &self.control {
            drop(control.answer(ask, outcome));
        }
    }

    pub(super) fn cancel(&self, reason: &str) {
        if let Some(control) = &self.control {
            control.cancel(reason);
        }
    }

    /// Lets go of the events.
    pub(super) fn stop_reading(&mut self) {
        self.reading = false;
        if matches!(self.stage, ReadStage::Reading(_)) {
            self.stage = ReadStage::Steering;
        }
    }

    /// Whether somebody waits for its events.
    pub(super) fn is_read(&self) -> bool {
        self.reading
    }
}
