use shoal_ports::{CallFailure, CallOutcome, Epoch};
use shoal_protocol::{Outcome, RawJson, RpcError};

use super::{checked, duration, millis, trusted};
use crate::error::Malformed;
use crate::proto::types::v1 as wire;
use crate::proto::types::v1::call_failure as fail;

pub(crate) fn error_out(error: RpcError) -> wire::RpcError {
    wire::RpcError {
        code: error.code,
        message: error.message,
        data: error.data.map(RawJson::into_bytes),
    }
}

/// Drops data that is not JSON.
pub(crate) fn error_in(error: wire::RpcError) -> RpcError {
    RpcError {
        code: error.code,
        message: error.message,
        data: error.data.and_then(|data| checked(data, "data").ok()),
    }
}

pub(crate) fn answer_out(outcome: Outcome) -> wire::Outcome {
    wire::Outcome {
        outcome: Some(match outcome {
            Outcome::Result(result) => wire::outcome::Outcome::Result(result.into_bytes()),
            Outcome::Error(error) => wire::outcome::Outcome::Error(error_out(error)),
        }),
    }
}

pub(crate) fn answer_in(outcome: Option<wire::Outcome>) -> Result<Outcome, Malformed> {
    match outcome.and_then(|outcome| outcome.outcome) {
        Some(wire::outcome::Outcome::Result(result)) => Ok(Outcome::Result(trusted(result))),
        Some(wire::outcome::Outcome::Error(error)) => Ok(Outcome::Error(error_in(error))),
        None => Err(Malformed("outcome: neither result nor error")),
    }
}

pub(crate) fn outcome_out(outcome: CallOutcome) -> wire::CallOutcome {
    use wire::call_outcome::Outcome;
    wire::CallOutcome {
        outcome: Some(match outcome {
            CallOutcome::Result(result) => Outcome::Result(result.into_bytes()),
            // The node treats a worker's refusal like an error of the worker's backend.
            CallOutcome::Error(error) | CallOutcome::Refused(error) => {
                Outcome::Error(error_out(error))
            }
            CallOutcome::Failed(failure) => Outcome::Failure(failure_out(failure)),
        }),
    }
}

/// An invalid outcome also ends the call, with an error.
pub(crate) fn outcome_in(outcome: wire::CallOutcome) -> CallOutcome {
    use wire::call_outcome::Outcome;
    match outcome.outcome {
        Some(Outcome::Result(result)) => match checked(result, "result") {
            Ok(result) => CallOutcome::Result(result),
            Err(_) => CallOutcome::Error(RpcError::internal(
                "the worker answered with a result that is not JSON",
            )),
        },
        Some(Outcome::Error(error)) => CallOutcome::Error(error_in(error)),
        Some(Outcome::Failure(failure)) => CallOutcome::Failed(failure_in(Some(failure))),
        None => CallOutcome::Failed(unknown_end()),
    }
}

pub(crate) fn failure_out(failure: CallFailure) -> wire::CallFailure {
    use fail::Failure;
    wire::CallFailure {
        failure: Some(match failure {
            CallFailure::NotExecuted { reason }
            | CallFailure::WorkerAway { reason }
            | CallFailure::NotReady { reason, .. } => {
                Failure::NotExecuted(fail::NotExecuted { reason })
            }
            CallFailure::Overloaded {
                reason,
                retry_after,
            } => Failure::Overloaded(fail::Overloaded {
                reason,
                retry_after_ms: millis(retry_after),
            }),
            CallFailure::OutcomeUnknown { reason } => {
                Failure::OutcomeUnknown(fail::OutcomeUnknown { reason })
            }
            CallFailure::DeadlineExceeded { limit } => {
                Failure::DeadlineExceeded(fail::DeadlineExceeded {
                    limit_ms: millis(limit),
                })
            }
            CallFailure::Cancelled => Failure::Cancelled(fail::Cancelled {}),
            CallFailure::Superseded { epoch } => {
                Failure::Superseded(fail::Superseded { epoch: epoch.0 })
            }
        }),
    }
}

pub(crate) fn failure_in(failure: Option<wire::CallFailure>) -> CallFailure {
    use fail::Failure;
    match failure.and_then(|failure| failure.failure) {
        Some(Failure::NotExecuted(fail::NotExecuted { reason })) => {
            CallFailure::NotExecuted { reason }
        }
        Some(Failure::Overloaded(overloaded)) => CallFailure::Overloaded {
            reason: overloaded.reason,
            retry_after: duration(overloaded.retry_after_ms),
        },
        Some(Failure::OutcomeUnknown(fail::OutcomeUnknown { reason })) => {
            CallFailure::OutcomeUnknown { reason }
        }
        Some(Failure::DeadlineExceeded(exceeded)) => CallFailure::DeadlineExceeded {
            limit: duration(exceeded.limit_ms),
        },
        Some(Failure::Cancelled(fail::Cancelled {})) => CallFailure::Cancelled,
        Some(Failure::Superseded(fail::Superseded { epoch })) => CallFailure::Superseded {
            epoch: Epoch(epoch),
        },
        None => unknown_end(),
    }
}

fn unknown_end() -> CallFailure {
    CallFailure::OutcomeUnknown {
        reason: "its worker ended it in a way that this release does not know".to_owned(),
    }
}
