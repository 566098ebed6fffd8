use std::sync::Arc;
use std::time::{Duration, SystemTime};

use shoal_ports::{
    CallControl as _, CallEventKind, CallFailure, CallId, CallOutcome, Caller, LogFilter,
};
use shoal_protocol::{
    ClientCapability, Continuation, Method, PROGRESS_TOKEN, RawJson, RawObject, RequestDigest,
    RequestState, RpcError, declares,
};
use tokio::time::Instant;

use super::input::{InputRequired, KeyedRequest, input_required};
use super::parking::{Parked, ParkingFull, Question};
use super::result::{Judged, judge};
use crate::shape::{Shaping, Typed};
use crate::shared::DispatchState;
use crate::worker_call::WorkerCall;

const PARKING_RETRY: Duration = Duration::from_secs(10);

pub(crate) struct ModernRequest {
    pub(crate) shared: Arc<DispatchState>,
    pub(crate) shaping: Arc<Shaping>,
    pub(crate) call: CallId,
    pub(crate) method: Method,
    pub(crate) params: Option<RawJson>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) started: Instant,
    /// The end of a request whose call may be parked, because the worker's deadline for such a call is later. `None`
    /// for other requests.
    pub(crate) deadline: Option<Instant>,
    /// Whether the request answers an earlier request's questions. If several requests answer them, the last
    /// continues the call.
    pub(crate) is_answer: bool,
    /// A retry's progress token and log level, which may differ from the first request's.
    pub(crate) retry: Option<RetryStream>,
}

pub(crate) struct RetryStream {
    pub(crate) progress_token: Option<RawJson>,
    pub(crate) log: LogFilter,
    pub(crate) seen: u64,
}

impl ModernRequest {
    pub(super) fn finish(&self, outcome: CallOutcome) -> CallOutcome {
        let outcome = match outcome {
            CallOutcome::Result(result) => match judge(&self.method, &result) {
                Ok(Judged::Complete(_)) => CallOutcome::Result(result),
                Ok(Judged::Required(required)) => self.seal_backend(required),
                Err(error) => CallOutcome::Error(error),
            },
            other => other,
        };
        self.shaped(outcome)
    }

    pub(crate) fn shaped(&self, outcome: CallOutcome) -> CallOutcome {
        let revision = self.caller.revision;
        (self.shaping).outcome(revision, &self.method, outcome, Typed::Perhaps)
    }

    fn seal_backend(&self, mut required: InputRequired) -> CallOutcome {
        if let Err(error) = self.check(&required.requests) {
            return CallOutcome::Error(error);
        }
        let state = required.state.take();
        let call = Some(self.call.to_string());
        let sealed = self.seal(Continuation::Backend { state, call });
        required.object.set("requestState", RawJson::of(&sealed));
        CallOutcome::Result(required.object.to_json())
    }

    pub(super) fn park(&self, worker_call: WorkerCall, questions: Vec<Question>) -> CallOutcome {
        let requests: Vec<KeyedRequest> = questions.iter().map(|q| q.request.clone()).collect();
        let (repeatable, handle) = (worker_call.is_repeatable(), worker_call.handle.clone());
        let parked = Parked {
            worker_call,
            questions,
        };
        let call = parked.locator().to_string();
        let asked = requests
            .iter()
            .map(|request| (request.key.clone(), request.digest()));
        let asked = asked.collect();
        let principal = self.caller.principal.clone();
        if let Err(full) = self.shared.lot.park(principal, parked) {
            handle.cancel("too many calls wait for their clients' answers");
            return CallOutcome::Failed(full_failure(&full, repeatable));
        }
        let sealed = self.seal(Continuation::Parked { call, asked });
        self.shaped(CallOutcome::Result(input_required(&requests, &sealed)))
    }

    pub(crate) fn ask(
        &self,
        key: &str,
        method: Method,
        params: RawJson,
        continuation: Continuation,
    ) -> CallOutcome {
        let question = KeyedRequest {
            key: key.to_owned(),
            method,
            params: Some(params),
        };
        let sealed = self.seal(continuation);
        CallOutcome::Result(input_required(&[question], &sealed))
    }

    fn seal(&self, continuation: Continuation) -> String {
        let expires_at = unix_now() + self.shared.config.calls.input_timeout.get().as_secs();
        self.shared.keys.seal(&RequestState {
            principal: self.caller.principal.as_str().to_owned(),
            expires_at,
            digest: RequestDigest::of(&self.method, self.params.as_ref()),
            continuation,
        })
    }

    pub(super) fn check<'a>(
        &self,
        requests: impl IntoIterator<Item = &'a KeyedRequest>,
    ) -> Result<(), RpcError> {
        for request in requests {
            match ClientCapability::needed_by(&request.method, request.params.as_ref()) {
                Some(needed) if declares(&self.caller.capabilities, needed) => {}
                Some(needed) => return Err(needed.missing()),
                None => {
                    let text = format!("the backend asked for {}", request.method);
                    return Err(RpcError::internal(format!(
                        "{text}, which clients do not support"
                    )));
                }
            }
        }
        Ok(())
    }

    pub(super) fn notification(
        &self,
        sequence: u64,
        method: Method,
        params: Option<RawJson>,
    ) -> Option<CallEventKind> {
        let Some(retry) = &self.retry else {
            return Some(CallEventKind::Notification { method, params });
        };
        if sequence <= retry.seen {
            return None;
        }
        let mut object = params.as_ref().and_then(RawObject::of).unwrap_or_default();
        let params = match method {
            Method::Progress => {
                object.set(PROGRESS_TOKEN, retry.progress_token.clone()?);
                Some(object.to_json())
            }
            Method::LogMessage => {
                let level = object.get("level")?.read().ok()?;
                if !retry.log.passes(level) {
                    return None;
                }
                params
            }
            _ => params,
        };
        Some(CallEventKind::Notification { method, params })
    }
}

/// If a repeat is not safe, the outcome is unknown, because the call has run up to its question.
fn full_failure(full: &ParkingFull, repeatable: bool) -> CallFailure {
    let reason = full.to_string();
    if repeatable {
        let retry_after = PARKING_RETRY;
        return CallFailure::overloaded(reason, retry_after);
    }
    CallFailure::outcome_unknown(format!(
        "{reason}, so Shoal cancelled the call when it asked its question"
    ))
}

pub(super) fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
