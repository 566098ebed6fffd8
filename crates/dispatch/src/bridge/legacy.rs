use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use shoal_ports::{
    AskId, CallControl as _, CallEvent, CallEventKind, CallFailure, CallOutcome, Caller,
};
use shoal_protocol::{ClientCapability, Method, Outcome, RawJson, RawObject, RpcError, declares};
use tokio::time::Instant;

use super::input::{InputRequired, with_round};
use super::result::{Judged, judge};
use super::{Allowance, Bridge};
use crate::rounds::EventPosition;
use crate::shape::{Shaping, Typed};
use crate::worker_call::WorkerCall;

/// Ask ids per round. The lower half is for the worker's questions, the upper for those of an `InputRequiredResult`.
const IDS_PER_ROUND: u64 = 1 << 32;

/// Turns the questions of an `InputRequiredResult` into requests to the client, and then calls the backend again with
/// the answers, which begins the next round.
///
/// Every node derives the same ask ids and round ids, so an answer to a lost session owner's question also answers
/// the next owner's question.
pub(crate) struct LegacyBridge {
    worker_call: WorkerCall,
    shaping: Arc<Shaping>,
    purpose: Purpose,
    queue: VecDeque<CallEvent>,
    phase: Phase,
}

pub(crate) struct Purpose {
    pub(crate) method: Method,
    pub(crate) caller: Arc<Caller>,
    pub(crate) deadline: Instant,
    pub(crate) started: Instant,
    pub(crate) max_rounds: u32,
    pub(crate) allowance: Option<Arc<Allowance>>,
}

enum Phase {
    Running,
    Asking {
        keys: Vec<(AskId, String)>,
        state: Option<String>,
    },
    Ended,
}

impl LegacyBridge {
    pub(crate) fn new(worker_call: WorkerCall, shaping: Arc<Shaping>, purpose: Purpose) -> Self {
        worker_call
            .handle
            .rebase(base(worker_call.position().round));
        if let Some(allowance) = &purpose.allowance {
            worker_call.handle.counts_by(Arc::clone(allowance));
        }
        Self {
            worker_call,
            shaping,
            purpose,
            queue: VecDeque::new(),
            phase: Phase::Running,
        }
    }

    fn base(&self) -> u64 {
        base(self.worker_call.position().round)
    }

    fn end(&mut self, outcome: CallOutcome) -> CallEventKind {
        self.phase = Phase::Ended;
        CallEventKind::Finished(outcome)
    }

    /// `None` if the event opened a round of questions.
    fn pass(&mut self, kind: CallEventKind) -> Option<CallEventKind> {
        match kind {
            CallEventKind::Ask {
                ask,
                method,
                params,
            } => Some(CallEventKind::Ask {
                ask: AskId(self.base() + ask.0),
                method,
                params,
            }),
            CallEventKind::Withdrawn { ask } => Some(CallEventKind::Withdrawn {
                ask: AskId(self.base() + ask.0),
            }),
            CallEventKind::State { ask, request } => Some(CallEventKind::State {
                ask: AskId(self.base() + ask.0),
                request,
            }),
            CallEventKind::Finished(CallOutcome::Result(result)) => self.finished(result),
            CallEventKind::Finished(outcome) => {
                let Purpose { method, caller, .. } = &self.purpose;
                let shaping = &self.shaping;
                let outcome = shaping.outcome(caller.revision, method, outcome, Typed::No);
                Some(self.end(outcome))
            }
            other => Some(other),
        }
    }

    fn finished(&mut self, result: RawJson) -> Option<CallEventKind> {
        let method = &self.purpose.method;
        let revision = self.purpose.caller.revision;
        let outcome = match judge(method, &result) {
            Ok(Judged::Complete(typed)) => {
                let complete = CallOutcome::Result(result);
                self.shaping.outcome(revision, method, complete, typed)
            }
            Ok(Judged::Required(required)) => match self.open_round(required) {
                Ok(()) => return None,
                Err(refused) => refused,
            },
            Err(error) => CallOutcome::Error(error),
        };
        Some(self.end(outcome))
    }

    fn open_round(&mut self, required: InputRequired) -> Result<(), CallOutcome> {
        let purpose = &self.purpose;
        let position = self.worker_call.position();
        if position.round >= purpose.max_rounds {
            return Err(CallOutcome::Error(RpcError::internal(format!(
                "the backend asked for input more than {} times",
                purpose.max_rounds
            ))));
        }
        let first = self.base() + IDS_PER_ROUND / 2;
        let mut keys = Vec::with_capacity(required.requests.len());
        let mut asks = Vec::with_capacity(required.requests.len());
        for (ask, request) in (first..).map(AskId).zip(required.requests) {
            check_capability(&purpose.caller, &request.method, request.params.as_ref())?;
            keys.push((ask, request.key));
            let kind = CallEventKind::Ask {
                ask,
                method: request.method,
                params: request.params,
            };
            asks.push(event(position.before(), kind));
        }
        let open = keys.iter().map(|(ask, _)| *ask).collect();
        self.worker_call.handle.open_round(open);
        self.queue.extend(asks);
        self.phase = Phase::Asking {
            keys,
            state: required.state,
        };
        Ok(())
    }

    async fn close_round(&mut self) -> Result<(), CallOutcome> {
        let Phase::Asking { keys, state } = &self.phase else {
            return Ok(());
        };
        let purpose = &self.purpose;
        let answers = self.worker_call.handle.answers();
        let answers = match tokio::time::timeout_at(purpose.deadline, answers).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(_)) => return Err(CallOutcome::Failed(CallFailure::Cancelled)),
            Err(_) => {
                let limit = purpose.deadline - purpose.started;
                return Err(CallOutcome::Failed(CallFailure::DeadlineExceeded { limit }));
            }
        };
        let responses = responses(keys, answers)?;
        let params = with_round(self.worker_call.params(), responses, state.as_deref());
        // Set before the round starts, so that the new offset fits the answers to the round's questions.
        let next = base(self.worker_call.position().round + 1);
        self.worker_call.handle.rebase(next);
        self.worker_call
            .restart(Some(params), purpose.deadline)
            .await
            .map_err(CallOutcome::Failed)?;
        self.phase = Phase::Running;
        Ok(())
    }
}

impl Bridge for LegacyBridge {
    async fn next(&mut self) -> Option<CallEvent> {
        let Some(allowance) = self.purpose.allowance.clone() else {
            return self.next_event().await;
        };
        let next = tokio::select! {
            // Biased: an event that came in time counts.
            biased;
            next = self.next_event() => next?,
            overdue = allowance.over() => {
                self.worker_call.handle.cancel(overdue.reason);
                let end = self.end(overdue.outcome);
                return Some(event(self.worker_call.position(), end));
            }
        };
        match &next.kind {
            CallEventKind::Ask { ask, .. } => allowance.asked(*ask),
            CallEventKind::Withdrawn { ask } => allowance.answered(*ask),
            _ => {}
        }
        Some(next)
    }
}

impl LegacyBridge {
    async fn next_event(&mut self) -> Option<CallEvent> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            match &self.phase {
                Phase::Ended => return None,
                Phase::Asking { .. } => {
                    if let Err(outcome) = self.close_round().await {
                        if let CallOutcome::Failed(CallFailure::Superseded { .. }) = outcome {
                            self.phase = Phase::Ended;
                            return None;
                        }
                        let end = self.end(outcome);
                        return Some(event(self.worker_call.position(), end));
                    }
                }
                Phase::Running => {
                    let Ok(kind) = self.worker_call.next().await else {
                        self.phase = Phase::Ended;
                        return None;
                    };
                    if let Some(kind) = self.pass(kind) {
                        return Some(event(self.worker_call.position(), kind));
                    }
                }
            }
        }
    }
}

fn base(round: u32) -> u64 {
    u64::from(round) * IDS_PER_ROUND
}

fn event(position: EventPosition, kind: CallEventKind) -> CallEvent {
    CallEvent {
        sequence: position.sequence(),
        kind,
    }
}

fn check_capability(
    caller: &Caller,
    method: &Method,
    params: Option<&RawJson>,
) -> Result<(), CallOutcome> {
    match ClientCapability::needed_by(method, params) {
        Some(needed) if declares(&caller.capabilities, needed) => Ok(()),
        Some(needed) => {
            let text =
                format!("the call needs the client capability {needed}, which was not declared");
            Err(CallOutcome::Error(RpcError::invalid_request(text)))
        }
        None => Err(CallOutcome::Error(RpcError::internal(format!(
            "the backend asked for {method}, which clients do not support"
        )))),
    }
}

fn responses(
    keys: &[(AskId, String)],
    mut answers: HashMap<AskId, Outcome>,
) -> Result<Option<RawJson>, CallOutcome> {
    if keys.is_empty() {
        return Ok(None);
    }
    let mut map = RawObject::default();
    for (ask, key) in keys {
        match answers.remove(ask) {
            Some(Outcome::Result(result)) => map.set(key, result),
            Some(Outcome::Error(error)) => {
                let text =
                    format!("the client answered the request {key:?} with an error: {error}");
                return Err(CallOutcome::Error(RpcError::internal(text)));
            }
            None => {}
        }
    }
    Ok(Some(map.to_json()))
}
