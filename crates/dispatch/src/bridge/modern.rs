use std::collections::VecDeque;
use std::time::Duration;

use shoal_ports::{
    CallControl as _, CallEvent, CallEventKind, CallFailure, CallOutcome, no_session,
};
use shoal_protocol::{Outcome, RpcError};

use super::Bridge;
use super::input::{GivenAnswers, KeyedRequest, key_of};
use super::parking::Question;
use super::request::ModernRequest;
use crate::worker_call::WorkerCall;

const GATHER: Duration = Duration::from_millis(2);

pub(crate) fn answered_before() -> CallOutcome {
    CallOutcome::Refused(RpcError::invalid_params(
        "requestState is not valid any more: another request has brought an answer to the same question, goes on with the call \
         and gets its result; this request has run nothing more",
    ))
}

pub(crate) struct ModernBridge {
    request: ModernRequest,
    worker_call: Option<WorkerCall>,
    queue: VecDeque<CallEventKind>,
    questions: Vec<Question>,
    given: GivenAnswers,
    /// The worker's last event number, also after `worker_call` is gone.
    seen: u64,
}

impl ModernBridge {
    pub(super) fn new(
        request: ModernRequest,
        worker_call: WorkerCall,
        questions: Vec<Question>,
        given: GivenAnswers,
    ) -> Self {
        // A call that runs again gets its answers only when it asks. Only this node has them, so other nodes must not
        // learn where the call runs and take it.
        if given.to.is_none() {
            worker_call.tell_where();
        }
        Self {
            request,
            worker_call: Some(worker_call),
            queue: VecDeque::new(),
            questions,
            given,
            seen: 0,
        }
    }

    pub(crate) fn started(request: ModernRequest, worker_call: WorkerCall) -> Self {
        Self::again(request, worker_call, GivenAnswers::default())
    }

    pub(crate) fn again(
        request: ModernRequest,
        worker_call: WorkerCall,
        given: GivenAnswers,
    ) -> Self {
        Self::new(request, worker_call, Vec::new(), given)
    }

    fn take(&mut self, kind: CallEventKind) -> Option<CallEventKind> {
        match kind {
            CallEventKind::Ask {
                ask,
                method,
                params,
            } => {
                let request = KeyedRequest {
                    key: key_of(ask),
                    method,
                    params,
                };
                let worker_call = self.worker_call.as_ref()?;
                match self.given.take(&request) {
                    // The client has already answered this question.
                    Some(answer) => drop(worker_call.handle.answer(ask, Outcome::Result(answer))),
                    None => self.questions.push(Question {
                        ask,
                        request,
                        sequence: worker_call.position().seen,
                    }),
                }
                None
            }
            CallEventKind::Withdrawn { ask } => {
                self.questions.retain(|question| question.ask != ask);
                None
            }
            CallEventKind::State { ask, .. } => {
                let worker_call = self.worker_call.as_ref()?;
                drop(worker_call.handle.answer(ask, Outcome::Error(no_session())));
                None
            }
            CallEventKind::CloseStream { .. } => None,
            CallEventKind::Notification { method, params } => {
                let seen = self.worker_call.as_ref()?.position().seen;
                self.request.notification(seen, method, params)
            }
            CallEventKind::Finished(outcome) => {
                self.worker_call = None;
                Some(CallEventKind::Finished(self.request.finish(outcome)))
            }
        }
    }

    async fn park(&mut self) {
        while let Some(worker_call) = &mut self.worker_call {
            let Some(kind) = worker_call.next_soon(GATHER).await else {
                break;
            };
            let passed = self.take(kind);
            self.queue.extend(passed);
        }
        if self.questions.is_empty() {
            return;
        }
        let Some(mut worker_call) = self.worker_call.take() else {
            return;
        };
        let outcome = match self
            .request
            .check(self.questions.iter().map(|q| &q.request))
        {
            Err(error) => {
                worker_call.handle.cancel("the client cannot answer");
                CallOutcome::Error(error)
            }
            Ok(()) if !worker_call.detach() => CallOutcome::Failed(CallFailure::Cancelled),
            Ok(()) => self
                .request
                .park(worker_call, std::mem::take(&mut self.questions)),
        };
        self.queue.push_back(CallEventKind::Finished(outcome));
    }
}

impl Bridge for ModernBridge {
    async fn next(&mut self) -> Option<CallEvent> {
        let kind = self.next_kind().await?;
        if let Some(worker_call) = &self.worker_call {
            self.seen = worker_call.position().seen;
        }
        let sequence = self.seen;
        Some(CallEvent { sequence, kind })
    }
}

impl ModernBridge {
    async fn next_kind(&mut self) -> Option<CallEventKind> {
        loop {
            if let Some(kind) = self.queue.pop_front() {
                return Some(kind);
            }
            if !self.questions.is_empty() && self.worker_call.is_some() {
                self.park().await;
                continue;
            }
            let worker_call = self.worker_call.as_mut()?;
            let kind = match self.request.deadline {
                None => Ok(worker_call.next().await),
                Some(deadline) => tokio::time::timeout_at(deadline, worker_call.next())
                    .await
                    .map_err(|_| deadline - self.request.started),
            };
            let kind = match kind {
                Ok(Ok(kind)) => kind,
                Ok(Err(_)) if self.request.is_answer => {
                    self.worker_call = None;
                    return Some(CallEventKind::Finished(answered_before()));
                }
                Ok(Err(superseded)) => {
                    CallEventKind::Finished(CallOutcome::Failed(superseded.failure()))
                }
                Err(limit) => {
                    worker_call.handle.cancel("its deadline passed");
                    self.worker_call = None;
                    let failure = CallFailure::DeadlineExceeded { limit };
                    return Some(CallEventKind::Finished(CallOutcome::Failed(failure)));
                }
            };
            if let Some(kind) = self.take(kind) {
                return Some(kind);
            }
        }
    }
}
