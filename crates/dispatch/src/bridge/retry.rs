use std::sync::Arc;

use shoal_ports::{
    Attach, Binding, Call, CallControl as _, CallFailure, CallOutcome, Repeat, Route, RunningCall,
};
use shoal_protocol::{
    Continuation, Index, Method, Outcome, RawJson, RawObject, RefusedState, RequestDigest,
    RequestMeta, RpcError,
};
use tokio::time::Instant;

use super::input::{GivenAnswers, ask_of, with_round};
use super::parking::{Locator, Parked};
use super::request::{RetryStream, unix_now};
use super::{ModernBridge, ModernRequest, running};
use crate::approval::{AnsweredApproval, read_retry};
use crate::in_flight::InFlightCall;
use crate::rounds::EventPosition;
use crate::shared::DispatchState;
use crate::worker_call::{CallOrigin, WorkerCall, attach};

/// One text for all invalid states, so that a caller cannot recognise another caller's state.
const INVALID_STATE: &str =
    "requestState is not valid for this request; all edges need the same state_keys";

pub(crate) enum Continued {
    Woken(Box<WokenCall>),
    Backend(RawJson),
    Asked(RawJson, AnsweredApproval),
    Rerun(RerunCall),
}

pub(crate) struct RerunCall {
    pub(crate) params: RawJson,
    pub(crate) given: GivenAnswers,
}

pub(crate) struct WokenCall {
    parked: Parked,
    retry: RetryStream,
    responses: RawObject,
    asked: Vec<String>,
}

/// Looks only at the members' names, not at their values.
pub(crate) fn may_continue(method: &Method, params: Option<&Index<'_>>) -> bool {
    let goes_on = |params: &Index<'_>| params.has_any(&["requestState", "inputResponses"]);
    method.may_require_input() && params.is_some_and(goes_on)
}

/// Opens a modern call's `requestState`. If another node parked the earlier call, attaches at its
/// worker.
///
/// # Errors
/// -32602 if the state does not verify. `OutcomeUnknown` if the parked call is gone and must not be repeated.
pub(crate) async fn continued(
    shared: &Arc<DispatchState>,
    call: &Call,
    in_flight: &InFlightCall,
) -> Result<Option<Continued>, CallOutcome> {
    let params = call.params.as_ref().map(RawJson::index);
    if !may_continue(&call.method, params.as_ref()) {
        return Ok(None);
    }
    let Some(params) = call.params.as_ref().and_then(RawObject::of) else {
        return Ok(None);
    };
    let said = |name| params.get(name).filter(|value| !value.is_null());
    let responses = said("inputResponses");
    if responses.as_ref().is_some_and(|given| !given.is_object()) {
        let malformed = RpcError::invalid_params("inputResponses must be an object");
        return Err(CallOutcome::Refused(malformed));
    }
    let Some(state) = said("requestState") else {
        return Ok(None);
    };
    let (place, asked) = match open(shared, call, &state).map_err(CallOutcome::Refused)? {
        Continuation::Backend {
            state,
            call: before,
        } => {
            if let Some(before) = before.and_then(|before| before.parse().ok()) {
                in_flight.continues(before);
            }
            let params = with_round(call.params.as_ref(), responses, state.as_deref());
            return Ok(Some(Continued::Backend(params)));
        }
        Continuation::Approval {
            call: agreed,
            worker,
            ledger,
        } => {
            let agreed = agreed.parse().map_err(|_| {
                // Another version of Shoal sealed this state.
                CallOutcome::Refused(RpcError::invalid_params(INVALID_STATE))
            })?;
            in_flight.continues(agreed);
            let responses = responses.as_ref().and_then(RawObject::of);
            let place = (agreed, worker.as_deref(), ledger);
            let answered = read_retry(call, responses.as_ref(), place);
            let params = with_round(call.params.as_ref(), None, None);
            return Ok(Some(Continued::Asked(params, answered)));
        }
        Continuation::Parked { call, asked } => (call.parse::<Locator>().ok(), asked),
    };
    let parked = match place {
        Some(place) => {
            in_flight.continues(place.call);
            find(shared, call, place).await
        }
        None => None,
    };
    let responses = responses.as_ref().and_then(RawObject::of);
    let Some((parked, seen)) = parked else {
        if call.repeat == Repeat::Never {
            return Err(CallOutcome::Failed(not_waiting()));
        }
        return Ok(Some(Continued::Rerun(RerunCall {
            params: with_round(call.params.as_ref(), None, None),
            given: GivenAnswers {
                answers: responses.unwrap_or_default(),
                to: Some(asked),
            },
        })));
    };
    let progress_token = RequestMeta::of(call.params.as_ref()).progress_token;
    Ok(Some(Continued::Woken(Box::new(WokenCall {
        parked,
        retry: RetryStream {
            progress_token: call.progress_token.clone().or(progress_token),
            log: call.log,
            seen,
        },
        responses: responses.unwrap_or_default(),
        asked: asked.into_keys().collect(),
    }))))
}

pub(crate) fn not_waiting() -> CallFailure {
    CallFailure::outcome_unknown(
        "the call that this requestState continues is not waiting any more",
    )
}

/// Returns the last event number that the client knows, or 0 if the call was parked here. The sealed state proves
/// that the caller owns the call.
async fn find(shared: &Arc<DispatchState>, call: &Call, place: Locator) -> Option<(Parked, u64)> {
    if let Some(parked) = shared.lot.wake(place.call).await {
        return Some((parked, 0));
    }
    let Locator {
        after,
        seen,
        worker,
        ..
    } = place;
    let until = match call.repeat {
        Repeat::Never => Instant::now() + shared.config.cluster.rejoin.get(),
        Repeat::Safe => Instant::now(),
    };
    let sought = Attach {
        trace: call.trace.clone(),
        ..Attach::new(place.call, after)
    };
    let found = attach(shared, &worker, sought, until).await;
    let (running, member) = found.ok()?;
    let call = Call {
        id: place.call,
        // The call has run up to its question, so it must not run again, whatever its tool declares.
        repeat: Repeat::Never,
        binding: Some(Binding {
            worker,
            ledger: None,
        }),
        ..call.clone()
    };
    let route = Route {
        pool: member.pool.clone(),
        params: None,
        tool: None,
        hold: None,
        rule: None,
    };
    let origin = CallOrigin::new(call, route, shared);
    let position = EventPosition {
        round: 0,
        seen: after,
    };
    let worker_call = WorkerCall::attached(shared.clone(), origin, running, member, position);
    let questions = Vec::new();
    Some((
        Parked {
            worker_call,
            questions,
        },
        seen,
    ))
}

fn open(shared: &DispatchState, call: &Call, state: &RawJson) -> Result<Continuation, RpcError> {
    let principal = call.caller.principal.as_str();
    let digest = RequestDigest::of(&call.method, call.params.as_ref());
    let sealed = state.string().unwrap_or_default();
    let earliest = unix_now().saturating_sub(shared.config.calls.clock_skew.get().as_secs());
    shared
        .keys
        .open(&sealed, principal, &digest, earliest)
        .map_err(|refused| {
            let refusal = refused.label();
            tracing::warn!(refusal, call = %call.id, %principal, "a requestState was refused: {refused}");
            RpcError::invalid_params(match refused {
                RefusedState::Expired => {
                    "requestState has expired because the answers arrived too late; send the request without requestState to start again"
                }
                _ => INVALID_STATE,
            })
        })
}

impl WokenCall {
    /// Shoal asks again for missing or malformed answers, and ignores unknown ones.
    pub(crate) fn wake(self, mut request: ModernRequest) -> RunningCall {
        let Self {
            parked:
                Parked {
                    mut worker_call,
                    questions,
                },
            retry,
            mut responses,
            asked,
        } = self;
        worker_call.wake();
        request.is_answer = true;
        let waits_here = !questions.is_empty();
        let open = questions
            .into_iter()
            .filter(|question| {
                let answer = responses.remove(&question.request.key);
                let Some(answer) = answer.filter(RawJson::is_object) else {
                    return true;
                };
                drop(
                    worker_call
                        .handle
                        .answer(question.ask, Outcome::Result(answer)),
                );
                false
            })
            .collect();
        request.retry = Some(retry);
        let given = match waits_here {
            true => GivenAnswers::default(),
            false => {
                // The call may become a task before it repeats its questions. Later answers would not reach the task.
                for key in &asked {
                    let answer = responses.get(key).filter(RawJson::is_object);
                    if let (Some(ask), Some(answer)) = (ask_of(key), answer) {
                        drop(worker_call.handle.answer(ask, Outcome::Result(answer)));
                    }
                }
                GivenAnswers {
                    answers: responses,
                    to: None,
                }
            }
        };
        running(worker_call, |worker_call| {
            ModernBridge::new(request, worker_call, open, given)
        })
    }
}
