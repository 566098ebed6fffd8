//! The approval question always has the same id and event number 0. A session owner that resumes the call at event 0
//! asks again.

use std::sync::Arc;

use futures::future::{BoxFuture, ready};
use parking_lot::Mutex;
use shoal_ports::{
    Answered, AskId, Binding, Bound, Call, CallControl, CallEvent, CallEventKind, CallEvents,
    CallFailure, CallOutcome, MayStart, Route, RunningCall, Started, WorkerId, answered,
};
use shoal_protocol::{Method, Outcome, RawJson};
use shoal_telemetry::metrics::ApprovalOutcome;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, timeout_at};

use super::{ApprovalAnswer, asked, question};
use crate::bridge::instead;
use crate::dispatch::Dispatch;
use crate::in_flight::InFlightCall;

/// The id of the approval question. Workers count a round's ids from 1.
const ASK: AskId = AskId(u32::MAX as u64);

pub(crate) enum AfterApproval {
    Planned(Route, Option<Binding>),
    /// An earlier session owner may have started the call at this worker.
    At(WorkerId),
    Anywhere,
}

struct Asking {
    dispatch: Dispatch,
    call: Call,
    next: Option<AfterApproval>,
    /// How long the call may run after its approval.
    time: Duration,
    /// When the question expires.
    until: Instant,
    control: Arc<AskControl>,
    phase: AskingPhase,
    place: Option<InFlightCall>,
}

enum AskingPhase {
    Asks(RawJson),
    Waits,
    Runs(CallEvents),
    Ended,
}

impl Dispatch {
    pub(crate) fn ask_first(&self, call: Call, pool: &str, next: AfterApproval) -> RunningCall {
        let params = match question(&self.shared.view(), &call, pool) {
            Ok(params) => params,
            Err(outcome) => return RunningCall::ended(outcome, None),
        };
        let planned = match &next {
            AfterApproval::Planned(_, worker) => {
                worker.as_ref().map(|binding| binding.worker.clone())
            }
            AfterApproval::At(worker) => Some(worker.clone()),
            AfterApproval::Anywhere => None,
        };
        let bound = call.binding.as_ref().map(|to| to.worker.clone());
        let worker = bound.or(planned);
        let now = Instant::now();
        let control = Arc::new(AskControl::default());
        let running = RunningCall {
            events: CallEvents::finished(CallOutcome::Failed(CallFailure::Cancelled)),
            control: control.clone(),
            worker,
        };
        let place = self.shared.in_flight.enter(&call);
        place.runs(&running);
        let asking = Box::new(Asking {
            dispatch: self.clone(),
            time: call.deadline.saturating_duration_since(now),
            until: now + self.shared.config.calls.input_timeout.get(),
            call,
            next: Some(next),
            control,
            phase: AskingPhase::Asks(params),
            place: Some(place),
        });
        let events = futures::stream::unfold(asking, |mut asking| async move {
            let event = asking.next().await?;
            Some((event, asking))
        });
        RunningCall {
            events: CallEvents::from_stream(events),
            ..running
        }
    }
}

impl Asking {
    async fn next(&mut self) -> Option<CallEvent> {
        match std::mem::replace(&mut self.phase, AskingPhase::Waits) {
            AskingPhase::Asks(params) => {
                return Some(CallEvent {
                    sequence: 0,
                    kind: CallEventKind::Ask {
                        ask: ASK,
                        method: Method::Elicit,
                        params: Some(params),
                    },
                });
            }
            AskingPhase::Waits => {}
            AskingPhase::Runs(mut events) => {
                let event = events.next().await;
                self.phase = AskingPhase::Runs(events);
                return event;
            }
            AskingPhase::Ended => {
                self.phase = AskingPhase::Ended;
                return None;
            }
        }
        let answer = timeout_at(self.until, self.control.answer()).await;
        let answer = match answer {
            Ok(Ok(said)) => ApprovalAnswer::of(&said),
            Ok(Err(CancelledByCaller)) => {
                asked(&self.call, None, ApprovalOutcome::Cancelled);
                return self.end(CallOutcome::Failed(CallFailure::Cancelled));
            }
            Err(_) => match self.control.close() {
                Some(said) => ApprovalAnswer::of(&said),
                None => ApprovalAnswer::Late,
            },
        };
        answer.tell(&self.call, None);
        if answer != ApprovalAnswer::Accepted {
            return self.end(answer.refusal());
        }
        match self.begin().await {
            Ok(running) => {
                let mut events = running.events;
                let event = events.next().await;
                self.phase = AskingPhase::Runs(events);
                event
            }
            Err(CallFailure::Superseded { .. }) => {
                self.control.superseded();
                self.phase = AskingPhase::Ended;
                None
            }
            Err(CallFailure::WorkerAway { reason }) => {
                self.end(CallOutcome::Failed(CallFailure::NotExecuted { reason }))
            }
            Err(failure) => self.end(CallOutcome::Failed(failure)),
        }
    }

    fn end(&mut self, outcome: CallOutcome) -> Option<CallEvent> {
        self.phase = AskingPhase::Ended;
        if let Some(place) = self.place.take() {
            place.ended(&outcome);
        }
        Some(CallEvent {
            sequence: 1,
            kind: CallEventKind::Finished(outcome),
        })
    }

    async fn begin(&mut self) -> Started {
        let dispatch = &self.dispatch;
        let mut call = self.call.clone();
        call.deadline = Instant::now() + self.time;
        call.may_start = MayStart::Yes;
        // The call enters its new place first, so that a concurrent stop finds it.
        let place = dispatch.shared.in_flight.enter(&call);
        if let Some(before) = self.place.take() {
            before.is_told_elsewhere();
        }
        let started = match self.next.take() {
            Some(AfterApproval::Planned(route, binding)) => {
                // The rules may have changed while the person decided.
                let access = dispatch.access(&call).once_more();
                match dispatch.find_surely(access, &call).await {
                    Ok(_) => {
                        if let Some(binding) = &mut call.binding {
                            // The person may have taken so long that a worker would refuse the planned ledger number
                            // as too old.
                            let ledger = dispatch.shared.view().ledger(&binding.worker);
                            binding.ledger = ledger.or(binding.ledger);
                        }
                        place.takes(&route);
                        dispatch.start_legacy(call, Some((route, binding))).await
                    }
                    Err(outcome) => instead(outcome),
                }
            }
            Some(AfterApproval::At(worker)) => {
                let until = Instant::now() + dispatch.shared.config.cluster.rejoin.get();
                dispatch.start_at(call, &worker, until).await
            }
            Some(AfterApproval::Anywhere) => dispatch.start_legacy(call, None).await,
            None => return Err(CallFailure::Cancelled),
        };
        let running = place.unless_failed(started)?;
        let pool = dispatch.counted(&running);
        let running = place.follow(running, pool);
        self.control.runs(Arc::clone(&running.control));
        Ok(running)
    }
}

struct CancelledByCaller;

#[derive(Default)]
struct AskControl {
    state: Mutex<AskState>,
    changed: Notify,
}

#[derive(Default)]
struct AskState {
    answer: Option<Outcome>,
    answered: bool,
    closed: bool,
    cancelled: Option<String>,
    below: Option<Arc<dyn CallControl>>,
    superseded: bool,
}

impl AskControl {
    /// Cancel safe: the answer stays until it is taken.
    async fn answer(&self) -> Result<Outcome, CancelledByCaller> {
        loop {
            {
                let mut state = self.state.lock();
                if state.cancelled.is_some() {
                    state.closed = true;
                    return Err(CancelledByCaller);
                }
                if let Some(said) = state.answer.take() {
                    return Ok(said);
                }
            }
            // An answer or a cancellation before this wait leaves a permit.
            self.changed.notified().await;
        }
    }

    fn close(&self) -> Option<Outcome> {
        let mut state = self.state.lock();
        state.closed = true;
        state.answer.take()
    }

    fn runs(&self, below: Arc<dyn CallControl>) {
        let cancelled = {
            let mut state = self.state.lock();
            state.below = Some(Arc::clone(&below));
            state.cancelled.clone()
        };
        if let Some(reason) = cancelled {
            below.cancel(&reason);
        }
    }

    fn superseded(&self) {
        self.state.lock().superseded = true;
    }

    fn below(&self) -> Option<Arc<dyn CallControl>> {
        self.state.lock().below.clone()
    }
}

impl CallControl for AskControl {
    fn answer(&self, ask: AskId, said: Outcome) -> Answered {
        if ask != ASK {
            let below = self.below();
            return below.map_or_else(|| answered(false), |below| below.answer(ask, said));
        }
        let mut state = self.state.lock();
        if state.answered || state.closed {
            return answered(state.answered);
        }
        state.answered = true;
        state.answer = Some(said);
        drop(state);
        self.changed.notify_one();
        answered(true)
    }

    fn cancel(&self, reason: &str) {
        let below = {
            let mut state = self.state.lock();
            state.cancelled.get_or_insert_with(|| reason.to_owned());
            state.below.clone()
        };
        self.changed.notify_one();
        if let Some(below) = below {
            below.cancel(reason);
        }
    }

    fn over(&self) -> Option<BoxFuture<'static, ()>> {
        self.below()?.over()
    }

    fn is_replaced(&self) -> bool {
        self.state.lock().superseded || self.below().is_some_and(|below| below.is_replaced())
    }

    fn bound(&self) -> BoxFuture<'static, Option<Bound>> {
        match self.below() {
            Some(below) => below.bound(),
            None => Box::pin(ready(None)),
        }
    }

    fn reader(&self) -> Option<u64> {
        self.below()?.reader()
    }
}
