//! The retry of a request that was answered with `InputRequiredResult`.

use shoal_ports::{Call, CallControl as _, RunningCall};
use shoal_protocol::{
    Continuation, Outcome, RawJson, RawObject, RequestDigest, RequestMeta, RpcError,
};

use super::input::with_round;
use super::modern::{RetryStream, unix_now};
use super::parking::{Locator, Parked};
use super::{Modern, ModernBridge, running};
use crate::shared::Shared;

/// How a request goes on.
pub(crate) enum Resumed {
    /// A call that was parked.
    Parked(Box<Waking>),
    /// The backend is called again with these parameters.
    Backend(RawJson),
}

/// A parked call that its client's retry has woken.
pub(crate) struct Waking {
    parked: Parked,
    retry: RetryStream,
    responses: RawObject,
}

/// Opens the `requestState` of a modern call; `None` when it has none.
///
/// # Errors
/// -32602 when the state does not verify, whatever the reason, or its call does not wait any more.
pub(crate) fn resume(shared: &Shared, call: &Call) -> Result<Option<Resumed>, RpcError> {
    if !call.method.may_require_input() {
        return Ok(None);
    }
    let Some(params) = call.params.as_ref().and_then(RawObject::of) else {
        return Ok(None);
    };
    let responses = params.get("inputResponses");
    if responses.as_ref().is_some_and(|given| !given.is_object()) {
        return Err(RpcError::invalid_params("inputResponses must be an object"));
    }
    let Some(state) = params.get("requestState") else {
        return Ok(None);
    };
    match open(shared, call, &state)? {
        Continuation::Backend { state } => Ok(Some(Resumed::Backend(with_round(
            call.params.as_ref(),
            responses,
            state.as_deref(),
        )))),
        Continuation::Parked { call: place } => {
            let parked = place
                .parse::<Locator>()
                .ok()
                .and_then(|place| shared.lot.wake(place.call))
                .ok_or_else(|| {
                    RpcError::invalid_params(
                        "the call that this requestState continues is not waiting any more: \
                         send the request without it to begin anew",
                    )
                })?;
            let progress_token = RequestMeta::of(call.params.as_ref()).progress_token;
            Ok(Some(Resumed::Parked(Box::new(Waking {
                parked,
                retry: RetryStream {
                    progress_token: call.progress_token.clone().or(progress_token),
                    log: call.log,
                },
                responses: responses
                    .as_ref()
                    .and_then(RawObject::of)
                    .unwrap_or_default(),
            }))))
        }
    }
}

fn open(shared: &Shared, call: &Call, state: &RawJson) -> Result<Continuation, RpcError> {
    let principal = call.caller.principal.as_str();
    let digest = RequestDigest::of(&call.method, call.params.as_ref());
    let sealed = state.string().unwrap_or_default();
    shared
        .keys
        .open(&sealed, principal, &digest, unix_now())
        .map_err(|refused| {
            tracing::warn!(call = %call.id, %principal, %refused, "a requestState was refused");
            RpcError::invalid_params("requestState is not valid")
        })
}

impl Waking {
    /// Tells the call its answers and lets it go on under the new request. What was not answered, or
    /// not with an object, is asked again; what was not asked is ignored.
    pub(crate) fn wake(self, mut request: Modern) -> RunningCall {
        let Parked { line, questions } = self.parked;
        let open = questions
            .into_iter()
            .filter(|question| {
                let answer = self.responses.get(&question.request.key);
                let Some(answer) = answer.filter(RawJson::is_object) else {
                    return true;
                };
                // A question that the call has given up meanwhile needs no answer.
                line.steering.answer(question.ask, Outcome::Result(answer));
                false
            })
            .collect();
        request.retry = Some(self.retry);
        running(line, 0, |line| ModernBridge::new(request, line, open))
    }
}
