use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream as _;
use futures::future::{BoxFuture, FutureExt as _};
use shoal_ports::{Answered, AskId, CallControl, CallEvent, CallEvents, CallFailure, RunningCall};
use shoal_protocol::Outcome;
use shoal_telemetry::metrics::{LinkKind, metrics};

use crate::link::ready::Bell;

pub(super) struct ServedCall {
    stage: ReadStage,
    control: Option<Arc<dyn CallControl>>,
    answers: Vec<(AskId, Answered)>,
    reading: bool,
    credit: i64,
    spoken: bool,
    /// The call is reported as accepted, although it has sent no event.
    late: bool,
    bell: Arc<Bell>,
    waker: Waker,
}

pub(super) type OpeningCall = BoxFuture<'static, Result<RunningCall, CallFailure>>;

enum ReadStage {
    Starting(OpeningCall),
    /// The node does not know the refusal yet.
    Refused(CallFailure),
    Reading(CallEvents),
    /// The node controls the call without reading its events.
    Steering,
}

pub(super) enum ServedStep {
    Wait,
    /// The worker got an answer. The flag tells whether the question was open.
    Answered(AskId, bool),
    Event(CallEvent),
    Refused(CallFailure),
    Ended,
}

impl ServedCall {
    pub(super) fn new(opening: OpeningCall, credit: i64, bell: Arc<Bell>) -> Self {
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

    pub(super) fn ring(&self) {
        self.bell.ring();
    }

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

    pub(super) fn poll(&mut self) -> ServedStep {
        self.begin();
        let waker = self.waker.clone();
        let mut cx = Context::from_waker(&waker);
        for at in 0..self.answers.len() {
            if let Poll::Ready(open) = self.answers[at].1.poll_unpin(&mut cx) {
                return ServedStep::Answered(self.answers.swap_remove(at).0, open);
            }
        }
        let events = match &mut self.stage {
            ReadStage::Reading(events) if self.credit > 0 => events,
            ReadStage::Refused(failure) => return ServedStep::Refused(failure.clone()),
            _ => return ServedStep::Wait,
        };
        match Pin::new(events).poll_next(&mut cx) {
            Poll::Pending => ServedStep::Wait,
            Poll::Ready(Some(event)) => ServedStep::Event(event),
            Poll::Ready(None) => ServedStep::Ended,
        }
    }

    pub(super) fn is_replaced(&self) -> bool {
        (self.control.as_ref()).is_some_and(|control| control.is_replaced())
    }

    /// `None` if the call has not started, or its tool has stopped.
    pub(super) fn over(&self) -> Option<BoxFuture<'static, ()>> {
        self.control.as_ref()?.over()
    }

    /// A starting call is not reported, because the worker may still refuse it.
    pub(super) fn is_to_be_accepted(&mut self, is_late: bool) -> bool {
        self.late |= is_late;
        self.late && self.control.is_some() && !self.spoken
    }

    /// Only the first sent frame has the reader's name; later ones have 0.
    pub(super) fn introduce(&mut self) -> u64 {
        match (std::mem::replace(&mut self.spoken, true), &self.control) {
            (false, Some(control)) => control.reader().unwrap_or(0),
            _ => 0,
        }
    }

    pub(super) fn sent(&mut self, cost: u64) {
        let had = self.credit;
        self.credit = had.saturating_sub_unsigned(cost);
        if had > 0 && self.credit <= 0 {
            metrics().rpc.stalled(LinkKind::Worker);
        }
    }

    pub(super) fn grant(&mut self, bytes: u64) {
        let dry = self.credit <= 0;
        self.credit = self.credit.saturating_add_unsigned(bytes);
        if dry && self.credit > 0 {
            self.ring();
        }
    }

    pub(super) fn answer(&mut self, ask: AskId, outcome: Outcome) {
        if let Some(control) = &self.control {
            self.answers.push((ask, control.answer(ask, outcome)));
            self.ring();
        }
    }

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

    pub(super) fn stop_reading(&mut self) {
        self.reading = false;
        if matches!(self.stage, ReadStage::Reading(_)) {
            self.stage = ReadStage::Steering;
        }
    }

    pub(super) fn is_read(&self) -> bool {
        self.reading
    }
}
