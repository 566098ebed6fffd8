//! A modern call from start to end, cancelled when nobody waits for it any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use http::StatusCode;
use shoal_ports::{
    Call, CallEventKind, CallFailure, CallOutcome, Dispatcher, RunningCall, no_session,
};
use shoal_protocol::{Method, Outcome, RawJson, RpcError};

use crate::refusal::status_of_outcome;

const DISCONNECTED: &str = "the client closed the connection";

/// A call under way.
pub(super) struct CallRun(RunState);

enum RunState {
    Starting(Pin<Box<dyn Future<Output = Result<RunningCall, CallFailure>> + Send>>),
    Running(RunningCall),
    Failed(CallFailure),
    Ended,
}

/// Something to tell the client.
pub(super) enum Step {
    /// A notification of the call.
    Notification {
        method: Method,
        params: Option<RawJson>,
    },
    /// The call's end; nothing follows.
    Ended(Ending),
}

/// How a call ended.
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    /// What HTTP says of it, if it is the whole answer.
    pub(super) status: StatusCode,
    /// When to come back, if a limit was reached or the node has yet to learn what there is.
    pub(super) retry_after: Option<Duration>,
}

impl CallRun {
    pub(super) fn new(dispatcher: Arc<dyn Dispatcher>, call: Call) -> Self {
        Self(match dispatcher.start_now(&call) {
            Some(Ok(running)) => RunState::Running(running),
            Some(Err(failure)) => RunState::Failed(failure),
            None => RunState::Starting(Box::pin(async move { dispatcher.start(call).await })),
        })
    }

    /// How the call has ended, if it has by now and that is all there is to say of it. Nothing else follows then.
    pub(super) fn ended(&mut self) -> Option<Ending> {
        let RunState::Running(running) = &mut self.0 else {
            return None;
        };
        let outcome = running.events.take_ended()?;
        self.0 = RunState::Ended;
        Some(Ending::of(outcome))
    }

    /// The next step. Not to be polled after `Ended`.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            match &mut self.0 {
                RunState::Starting(starting) => match ready!(starting.as_mut().poll(cx)) {
                    Ok(running) => self.0 = RunState::Running(running),
                    Err(failure) => return self.end(CallOutcome::Failed(failure)),
                },
                RunState::Running(running) => {
                    let event = ready!(Pin::new(&mut running.events).poll_next(cx));
                    match event.map(|event| event.kind) {
                        Some(CallEventKind::Notification { method, params }) => {
                            return Poll::Ready(Step::Notification { method, params });
                        }
                        Some(CallEventKind::Finished(outcome)) => return self.end(outcome),
                        // Only streams that can be resumed are worth closing early.
                        Some(CallEventKind::CloseStream { .. }) => {}
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
                RunState::Failed(_) => {
                    if let RunState::Failed(failure) =
                        std::mem::replace(&mut self.0, RunState::Ended)
                    {
                        return self.end(CallOutcome::Failed(failure));
                    }
                }
                RunState::Ended => return self.end(lost()),
            }
        }
    }

    fn end(&mut self, outcome: CallOutcome) -> Poll<Step> {
        self.0 = RunState::Ended;
        Poll::Ready(Step::Ended(Ending::of(outcome)))
    }
}

impl Ending {
    fn of(outcome: CallOutcome) -> Self {
        let retry_after = match &outcome {
            CallOutcome::Failed(
                CallFailure::Overloaded { retry_after, .. }
                | CallFailure::NotReady { retry_after, .. },
            ) => Some(*retry_after),
            _ => None,
        };
        Self {
            status: status_of_outcome(&outcome),
            outcome: outcome.into_outcome(),
            retry_after,
        }
    }
}

/// The dispatcher turns questions into `InputRequiredResult`s for modern callers, always.
fn unexpected_ask(running: &RunningCall, method: &Method) -> RpcError {
    tracing::error!(%method, "a modern call was left with a question to its client");
    running.control.cancel("the question cannot be delivered");
    RpcError::internal("the server failed to turn a question of the tool into a result")
}

fn lost() -> CallOutcome {
    CallOutcome::Failed(CallFailure::OutcomeUnknown {
        reason: "the connection to its worker was lost".to_owned(),
    })
}

impl Drop for CallRun {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.0, RunState::Ended) {
            RunState::Running(running) => running.control.cancel(DISCONNECTED),
            // A start that is under way cannot be taken back, only seen through and then cancelled.
            RunState::Starting(starting) => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move {
                        if let Ok(running) = starting.await {
                            running.control.cancel(DISCONNECTED);
                        }
                    });
                }
            }
            RunState::Failed(_) | RunState::Ended => {}
        }
    }
}
