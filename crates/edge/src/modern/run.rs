//! Dropping a modern call, as when its client leaves, cancels it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use futures::future::{BoxFuture, Either};
use http::StatusCode;
use shoal_ports::{
    Bound, Call, CallEventKind, CallFailure, CallOutcome, Dispatcher, Planned, Repeat, RunningCall,
    Started, no_session,
};
use shoal_protocol::{Method, Outcome, RawJson, RpcError};
use tokio::task::JoinHandle;

use super::become_task::{BecameTask, Candidate};
use crate::held_places::CallPlaces;
use crate::refusal::status_of_outcome;

const DISCONNECTED: &str = "the client closed the connection";

pub(super) struct CallRun {
    dispatcher: Arc<dyn Dispatcher>,
    state: RunState,
    /// `Never` until the plan is known.
    repeat: Repeat,
    candidate: Option<Box<Candidate>>,
    places: CallPlaces,
}

enum RunState {
    Planning(BoxFuture<'static, Planned>),
    Starting(BoxFuture<'static, Started>),
    Running(RunningCall),
    Becoming(JoinHandle<BecameTask>),
    Answered(CallOutcome),
    Ended,
}

pub(super) enum RunStep {
    Notification {
        method: Method,
        params: Option<RawJson>,
    },
    Ended(CallEnding),
}

pub(super) struct CallEnding {
    pub(super) outcome: Outcome,
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
}

impl CallRun {
    pub(super) fn new(
        dispatcher: Arc<dyn Dispatcher>,
        call: Call,
        candidate: Option<Box<Candidate>>,
        places: CallPlaces,
    ) -> Self {
        let mut run = Self {
            dispatcher,
            state: RunState::Ended,
            repeat: Repeat::Never,
            candidate,
            places,
        };
        run.state = match run.dispatcher.plan(call) {
            Either::Left(planned) => run.planned(planned.into_inner()),
            Either::Right(planning) => RunState::Planning(planning),
        };
        run
    }

    pub(super) fn repeat(&self) -> Repeat {
        self.repeat
    }

    /// Returns the end of a call that ended without earlier events.
    pub(super) fn ended(&mut self) -> Option<CallEnding> {
        let outcome = match &mut self.state {
            RunState::Running(running) => running.events.take_ended()?,
            RunState::Answered(_) => match std::mem::replace(&mut self.state, RunState::Ended) {
                RunState::Answered(outcome) => outcome,
                _ => return None,
            },
            _ => return None,
        };
        self.state = RunState::Ended;
        Some(CallEnding::of(outcome))
    }

    /// Drops earlier events. Cancel safe.
    pub(super) async fn ending(&mut self) -> CallEnding {
        loop {
            if let RunStep::Ended(ending) = std::future::poll_fn(|cx| self.poll_step(cx)).await {
                return ending;
            }
        }
    }

    fn planned(&mut self, planned: Planned) -> RunState {
        match planned {
            Ok(plan) => {
                self.repeat = plan.call.repeat;
                if let Some(candidate) = &mut self.candidate {
                    candidate.planned(&plan);
                }
                match self.dispatcher.start(&plan) {
                    Either::Left(started) => Self::started(started.into_inner()),
                    Either::Right(starting) => RunState::Starting(starting),
                }
            }
            Err(outcome) => {
                self.repeat = Repeat::Safe;
                RunState::Answered(outcome)
            }
        }
    }

    fn started(started: Started) -> RunState {
        match started {
            Ok(running) => RunState::Running(running),
            Err(failure) => RunState::Answered(CallOutcome::Failed(failure)),
        }
    }

    /// Must not be polled after `Ended`.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<RunStep> {
        loop {
            match &mut self.state {
                RunState::Planning(planning) => {
                    let planned = ready!(planning.as_mut().poll(cx));
                    self.state = self.planned(planned);
                }
                RunState::Starting(starting) => {
                    let started = ready!(starting.as_mut().poll(cx));
                    self.state = Self::started(started);
                }
                RunState::Running(running) => {
                    let Poll::Ready(event) = Pin::new(&mut running.events).poll_next(cx) else {
                        let bound = match &mut self.candidate {
                            Some(candidate) => ready!(candidate.poll_due(&*running.control, cx)),
                            None => return Poll::Pending,
                        };
                        self.become_task(bound);
                        continue;
                    };
                    match event.map(|event| event.kind) {
                        Some(CallEventKind::Notification { method, params }) => {
                            return Poll::Ready(RunStep::Notification { method, params });
                        }
                        Some(CallEventKind::Finished(outcome)) => {
                            let places = self.places.take();
                            if matches!(outcome, CallOutcome::Failed(_)) {
                                places.ended(running);
                            }
                            return self.end(outcome);
                        }
                        // Only resumable streams are worth closing early.
                        Some(CallEventKind::CloseStream { .. }) => {}
                        Some(CallEventKind::Withdrawn { .. }) => {}
                        Some(CallEventKind::State { ask, .. }) => {
                            drop(running.control.answer(ask, Outcome::Error(no_session())));
                        }
                        Some(CallEventKind::Ask { method, .. }) => {
                            let error = unexpected_ask(running, &method);
                            return self.end(CallOutcome::Error(error));
                        }
                        None => return self.end(lost()),
                    }
                }
                RunState::Becoming(becoming) => match ready!(Pin::new(becoming).poll(cx)) {
                    Ok(BecameTask::Task(task, handle)) => {
                        handle.hold(self.places.take());
                        return self.end(CallOutcome::Result(task.to_created()));
                    }
                    Ok(BecameTask::Nothing(running)) => self.state = RunState::Running(running),
                    Err(_) => return self.end(lost()),
                },
                RunState::Answered(_) | RunState::Ended => {
                    let ending = self.ended().unwrap_or_else(|| CallEnding::of(lost()));
                    return Poll::Ready(RunStep::Ended(ending));
                }
            }
        }
    }

    fn become_task(&mut self, bound: Option<Bound>) {
        let state = std::mem::replace(&mut self.state, RunState::Ended);
        self.state = match (state, self.candidate.take()) {
            (RunState::Running(running), Some(candidate)) => {
                RunState::Becoming(candidate.begin(running, bound))
            }
            (state, _) => state,
        };
    }

    fn end(&mut self, outcome: CallOutcome) -> Poll<RunStep> {
        self.state = RunState::Ended;
        Poll::Ready(RunStep::Ended(CallEnding::of(outcome)))
    }
}

impl CallEnding {
    fn of(outcome: CallOutcome) -> Self {
        let retry_after = match &outcome {
            CallOutcome::Failed(failure) => failure.retry_after(),
            _ => None,
        };
        Self {
            status: status_of_outcome(&outcome),
            outcome: outcome.into_outcome(),
            retry_after,
        }
    }
}

/// The dispatcher should have turned this question into an `InputRequiredResult`.
fn unexpected_ask(running: &RunningCall, method: &Method) -> RpcError {
    tracing::error!(%method, "the dispatcher did not turn a question of a modern call into a result");
    running.control.cancel("the question cannot be delivered");
    RpcError::internal("the server failed to turn a question of the tool into a result")
}

fn lost() -> CallOutcome {
    CallOutcome::Failed(CallFailure::outcome_unknown(
        "the connection to its worker was lost",
    ))
}

impl Drop for CallRun {
    fn drop(&mut self) {
        let places = self.places.take();
        match std::mem::replace(&mut self.state, RunState::Ended) {
            RunState::Running(running) => cancel(running, places),
            // A start that is under way cannot be undone, so the call is cancelled after it.
            RunState::Starting(starting) => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move {
                        if let Ok(running) = starting.await {
                            cancel(running, places);
                        }
                    });
                }
            }
            // The client will not hear of the new task, so the edge ends it.
            RunState::Becoming(becoming) => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move {
                        match becoming.await {
                            Ok(BecameTask::Task(_, task)) => {
                                task.hold(places);
                                task.end().await;
                            }
                            Ok(BecameTask::Nothing(running)) => cancel(running, places),
                            Err(_) => {}
                        }
                    });
                }
            }
            RunState::Planning(_) | RunState::Answered(_) | RunState::Ended => {}
        }
    }
}

fn cancel(running: RunningCall, places: CallPlaces) {
    running.control.cancel(DISCONNECTED);
    places.see_out(running);
}
