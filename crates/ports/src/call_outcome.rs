use std::time::Duration;

use shoal_protocol::{Outcome, RawJson, RpcError};

use crate::{Epoch, Kind, Retry};

/// The outcome of a call.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// The backend's result. Only modern callers see `resultType: "input_required"`.
    Result(RawJson),
    /// The backend's own error.
    Error(RpcError),
    /// Shoal's refusal before the call ran, such as for an unknown tool.
    Refused(RpcError),
    /// Shoal could not finish the call.
    Failed(CallFailure),
}

/// Why Shoal did not finish a call. Clients must be able to tell a call that was not executed from a call whose outcome
/// is unknown (`docs/guarantees.md`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The call was not executed.
    #[error("the call was not executed: {reason}; it is safe to send it again")]
    NotExecuted {
        /// The reason.
        reason: String,
    },
    /// This node could not send the call to its bound worker. Only the node that bound the call knows whether other
    /// nodes sent it.
    #[error("the call was not executed: {reason}; it is safe to send it again")]
    WorkerAway {
        /// The reason.
        reason: String,
    },
    /// The call was not executed, because this node may not know the call's target yet.
    #[error("the call was not executed: {reason}; it is safe to send it again in {} s", retry_after.as_secs().max(1))]
    NotReady {
        /// The facts that this node lacks.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// A limit was reached, and the call was not executed.
    #[error("the call was not executed: {reason}; try again in {} s", retry_after.as_secs().max(1))]
    Overloaded {
        /// The limit.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// The call may have run, and Shoal does not know its effect.
    #[error("the outcome of the call is unknown: {reason}; check before you repeat it")]
    OutcomeUnknown {
        /// The reason.
        reason: String,
    },
    /// The call's deadline passed.
    #[error("the call did not finish within {} s and was cancelled", (limit.as_secs_f64() * 100.0).round() / 100.0)]
    DeadlineExceeded {
        /// The time that the call was allowed.
        limit: Duration,
    },
    /// The caller or an operator cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The worker knows a later session owner and did not act. The session owner that gets this must ask the store who
    /// owns the session.
    #[error(
        "the outcome of the call is unknown: its session has another owner; check before you repeat it"
    )]
    Superseded {
        /// The highest epoch that the worker knows.
        epoch: Epoch,
    },
}

impl CallFailure {
    /// Makes the answer to a call that comes after its worker's goodbye.
    pub fn worker_left() -> Self {
        Self::not_executed("the worker has left")
    }

    /// Makes a [`NotExecuted`](Self::NotExecuted).
    pub fn not_executed(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::NotExecuted { reason }
    }

    /// Makes an [`Overloaded`](Self::Overloaded).
    pub fn overloaded(reason: impl Into<String>, retry_after: Duration) -> Self {
        let reason = reason.into();
        Self::Overloaded {
            reason,
            retry_after,
        }
    }

    /// Makes an [`OutcomeUnknown`](Self::OutcomeUnknown).
    pub fn outcome_unknown(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::OutcomeUnknown { reason }
    }

    /// Returns the failure's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotExecuted { .. }
            | Self::WorkerAway { .. }
            | Self::NotReady { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Superseded { .. } => Kind::Unavailable,
            Self::Overloaded { .. } => Kind::Overloaded,
            Self::DeadlineExceeded { .. } => Kind::Deadline,
            Self::Cancelled => Kind::Cancelled,
        }
    }

    /// Whether a client may send the call again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::NotExecuted { .. }
            | Self::WorkerAway { .. }
            | Self::NotReady { .. }
            | Self::Overloaded { .. } => Retry::Always,
            Self::OutcomeUnknown { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Cancelled
            | Self::Superseded { .. } => Retry::IfIdempotent,
        }
    }

    /// Returns when to retry, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotReady { retry_after, .. } | Self::Overloaded { retry_after, .. } => {
                Some(*retry_after)
            }
            _ => None,
        }
    }

    /// Returns the JSON-RPC error that the client gets.
    pub fn to_rpc(&self) -> RpcError {
        use shoal_protocol::code;
        let code = match self {
            Self::NotExecuted { .. } | Self::WorkerAway { .. } | Self::NotReady { .. } => {
                code::NOT_EXECUTED
            }
            Self::Overloaded { .. } => code::OVERLOADED,
            Self::OutcomeUnknown { .. } | Self::Superseded { .. } => code::OUTCOME_UNKNOWN,
            Self::DeadlineExceeded { .. } => code::DEADLINE_EXCEEDED,
            Self::Cancelled => code::REQUEST_CANCELLED,
        };
        RpcError::new(code, self.to_string())
    }
}

impl CallOutcome {
    /// Returns the result or error of the response to the client.
    pub fn into_outcome(self) -> Outcome {
        match self {
            Self::Result(result) => Outcome::Result(result),
            Self::Error(error) | Self::Refused(error) => Outcome::Error(error),
            Self::Failed(failure) => Outcome::Error(failure.to_rpc()),
        }
    }
}
