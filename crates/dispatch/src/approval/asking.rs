//! A legacy call that waits for a person: a running call to whoever reads it, of which nothing is started.
//!
//! Its events begin with the question. After the yes they are those of the call. The question has the same id whoever puts
//! it, and the number before that of the call's first event: whoever resumes there puts it again.

use std::sync::Arc;

use futures::future::{BoxFuture, ready};
use parking_lot::Mutex;
use shoal_ports::{
    Answered, AskId, Binding, Bound, Call, CallControl, CallEvent, CallEventKind, CallEvents,
    CallFailure, CallOutcome, Route, RunningCall, Started, WorkerId, answered,
};
use shoal_protocol::{Method, Outcome, RawJson};
use shoal_telemetry::metrics::ApprovalOutcome;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, timeout_at};

use super::{Answer, asked, question};
use crate::dispatch::Dispatch;
use crate::in_flight::InFlightCall;
use crate::start::instead;

/// The last of the ids that a call's first round may use; workers count theirs from 1.
const ASK: AskId = AskId(u32::MAX as u64);

/// How a call begins after the yes.
pub(crate) enum Next {
    /// By its plan. Nothing of it has left for any worker.
    Planned(Route, Option<Binding>),
    /// At the worker that its journal names, where an earlier owner of its session may have begun it.
    At(WorkerId),
    /// Wherever there is room. It is safe to repeat.
    Anywhere,
}

struct Asking {
    dispatch: Dispatch,
    call: Call,
    next: Option<Next>,
    /// What the call is given once it runs.
    time: Duration,
    /// Until when an answer counts.
    until: Instant,
    control: Arc<AskControl>,
    phase: Phase,
    /// Among the calls in flight, until it runs and has a place of its own.
    place: Option<InFlightCall>,
}

enum Phase {
    Asks(RawJson),
    Waits,
    Runs(CallEvents),
    Ended,
}

impl Dispatch {
    /// Puts the question whether a call of a legacy client may begin.
    pub(crate) fn ask_first(&self, call: Call, pool: &str, next: Next) -> RunningCall {
        let params = match question(&self.shared.view(), &call, pool) {
            Ok(params) => params,
            Err(outcome) => return RunningCall::ended(outcome, None),
        };
        let planned = match &next {
            Next::Planned(_, worker) => worker.as_ref().map(|binding| binding.worker.clone()),
            Next::At(worker) => Some(worker.clone()),
            Next::Anywhere => None,
        };
        let worker = call.worker.clone().or(planned);
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
            until: now + self.shared.config.parking_time,
            call,
            next: Some(next),
            control,
            phase: Phase::Asks(params),
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
        match std::mem::replace(&mut self.phase, Phase::Waits) {
            Phase::Asks(params) => {
                return Some(CallEvent {
                    sequence: 0,
                    kind: CallEventKind::Ask {
                        ask: ASK,
                        method: Method::Elicit,
                        params: Some(params),
                    },
                });
            }
            Phase::Waits => {}
            Phase::Runs(mut events) => {
                let event = events.next().await;
                self.phase = Phase::Runs(events);
                return event;
            }
            Phase::Ended => {
                self.phase = Phase::Ended;
                return None;
            }
        }
        let answer = timeout_at(self.until, self.control.answer()).await;
        let answer = match answer {
            Ok(Ok(said)) => Answer::of(&said),
            Ok(Err(CancelledByCaller)) => {
                asked(&self.call, None, ApprovalOutcome::Cancelled);
                return self.end(CallOutcome::Failed(CallFailure::Cancelled));
            }
            // One that came at the last moment is as good as any other.
            Err(_) => match self.control.close() {
                Some(said) => Answer::of(&said),
                None => Answer::Late,
            },
        };
        answer.tell(&self.call, None);
        if answer != Answer::Accepted {
            return self.end(answer.refusal());
        }
        match self.begin().await {
            Ok(running) => {
                let mut events = running.events;
                let event = events.next().await;
                self.phase = Phase::Runs(events);
                event
            }
            Err(CallFailure::Superseded { .. }) => {
                // Whoever owns the session finds out who goes on with it.
                self.control.superseded();
                self.phase = Phase::Ended;
                None
            }
            Err(CallFailure::WorkerAway { reason }) => {
                self.end(CallOutcome::Failed(CallFailure::NotExecuted { reason }))
            }
            Err(failure) => self.end(CallOutcome::Failed(failure)),
        }
    }

    /// The end of a call that does not run.
    fn end(&mut self, outcome: CallOutcome) -> Option<CallEvent> {
        self.phase = Phase::Ended;
        if let Some(place) = self.place.take() {
            place.ended(&outcome);
        }
        Some(CallEvent {
            sequence: 1,
            kind: CallEventKind::Finished(outcome),
        })
    }

    /// The person has agreed: the call begins, with the time that it was to have.
    async fn begin(&mut self) -> Started {
        let dispatch = &self.dispatch;
        let mut call = self.call.clone();
        call.deadline = Instant::now() + self.time;
        call.asks_first = false;
        // Entered before it leaves its other place, so that whoever stops it finds it.
        let place = dispatch.shared.in_flight.enter(&call);
        if let Some(before) = self.place.take() {
            before.is_told_elsewhere();
        }
        let started = match self.next.take() {
            Some(Next::Planned(route, binding)) => {
                // By the rules of now: they may have changed while the person thought.
                let access = dispatch.access(&call).once_more();
                match dispatch.find_surely(access, &call).await {
                    Ok(_) => {
                        if let Some(worker) = &call.worker {
                            // Nothing of it has left for there: it is bound under the number of now, lest the time that the
                            // person took makes the worker refuse it.
                            let ledger = dispatch.shared.view().ledger(worker);
                            call.ledger = ledger.or(call.ledger);
                        }
                        place.takes(&route);
                        dispatch.start_legacy(call, Some((route, binding))).await
                    }
                    Err(outcome) => instead(outcome),
                }
            }
            Some(Next::At(worker)) => {
                let until = Instant::now() + dispatch.shared.config.reconnect_wait();
                dispatch.start_at(call, &worker, until).await
            }
            Some(Next::Anywhere) => dispatch.start_legacy(call, None).await,
            None => return Err(CallFailure::Cancelled),
        };
        let running = place.unless_failed(started)?;
        let pool = dispatch.counted(&running);
        let running = place.follow(running, pool);
        self.control.runs(Arc::clone(&running.control));
        Ok(running)
    }
}

/// Why there will be no answer.
struct CancelledByCaller;

/// Steers a call that a person is asked about, and then the call itself.
#[derive(Default)]
struct AskControl {
    state: Mutex<AskState>,
    changed: Notify,
}

#[derive(Default)]
struct AskState {
    /// The person's answer, until it is taken.
    answer: Option<Outcome>,
    /// Whether there was one.
    answered: bool,
    /// Whether none counts any more.
    closed: bool,
    cancelled: Option<String>,
    below: Option<Arc<dyn CallControl>>,
    superseded: bool,
}

impl AskControl {
    /// The person's answer. Cancellation safe.
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
            // A notification between the look and the wait leaves a permit behind.
            self.changed.notified().await;
        }
    }

    /// Takes no answer from now on; what has come by now.
    fn close(&self) -> Option<Outcome> {
        let mut state = self.state.lock();
        state.closed = true;
        state.answer.take()
    }

    /// The call runs.
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
            // A second answer is told as the first was.
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
