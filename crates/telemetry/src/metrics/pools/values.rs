use shoal_ports::{CallFailure, CallOutcome};

use crate::metrics::Failure;
use crate::metrics::labels::{OUTCOME, REASON, STATE, labels};

labels! {
    /// The state of a worker.
    WorkerState: STATE {
        /// The worker accepts calls.
        Ready = "ready",
        /// The worker's backend is not ready yet.
        Starting = "starting",
        /// The worker finishes its calls and accepts no more.
        Draining = "draining",
        /// The connection to the worker is down.
        Unreachable = "unreachable",
    }
}

labels! {
    /// Whether calls go to a worker.
    CircuitState: STATE {
        /// The worker gets every call.
        Closed = "closed",
        /// The worker gets no calls for a while.
        Open = "open",
        /// The worker gets one call as a test.
        HalfOpen = "half_open",
    }
}

labels! {
    /// How a call's wait for a worker ended.
    QueueOutcome: OUTCOME {
        /// The call went to a worker.
        Dispatched = "dispatched",
        /// Shoal refused the call.
        Shed = "shed",
        /// The client cancelled the call.
        Cancelled = "cancelled",
        /// The call's deadline passed.
        Deadline = "deadline",
    }
}

labels! {
    /// The outcome of a call, as it is counted.
    CountedOutcome: OUTCOME {
        /// The call ended with a result.
        Completed = "completed",
        /// The call ended with a result that has `isError`.
        ToolError = "tool_error",
        /// The call ended with a JSON-RPC error.
        Error = "error",
        /// The client cancelled the call.
        Cancelled = "cancelled",
        /// The call's deadline passed.
        Deadline = "deadline",
        /// The worker is lost, and nobody knows how the call ended.
        Lost = "lost",
        /// The call waits for its client's answer.
        Parked = "parked",
    }
}

labels! {
    /// Why a call was refused.
    ShedReason: REASON {
        /// The queue is full.
        QueueFull = "queue_full",
        /// The call waited for the maximum time, or would have.
        QueueTimeout = "queue_timeout",
        /// The pool has no worker.
        NoWorker = "no_worker",
        /// The circuit breaker of every worker is open.
        CircuitOpen = "circuit_open",
        /// The pool's workers are stopping.
        Draining = "draining",
    }
}

labels! {
    /// Why a call was sent again.
    RetryReason: REASON {
        /// The worker was lost before it accepted the call.
        NotStarted = "not_started",
        /// The worker was lost, and the call is safe to repeat.
        WorkerLost = "worker_lost",
        /// The worker had no free place.
        Busy = "busy",
        /// The worker was stopping.
        Draining = "draining",
        /// The server failed before the call had an effect.
        BackendFailed = "backend_failed",
    }
}

impl CountedOutcome {
    /// Returns the outcome to count. Searches a result for `isError`.
    #[must_use]
    pub fn of(outcome: &CallOutcome) -> Self {
        Self::with(outcome, Failure::of(outcome))
    }

    /// Like [`of`](Self::of), for a known failure.
    #[must_use]
    pub fn with(outcome: &CallOutcome, failure: Option<Failure>) -> Self {
        match Self::complete(outcome, failure) {
            Self::Completed if outcome.asks_for_input() => Self::Parked,
            counted => counted,
        }
    }

    /// Like [`of`](Self::of), for a result that does not ask for input.
    #[must_use]
    pub fn of_complete(outcome: &CallOutcome) -> Self {
        Self::complete(outcome, Failure::of(outcome))
    }

    fn complete(outcome: &CallOutcome, failure: Option<Failure>) -> Self {
        match outcome {
            CallOutcome::Result(_) if failure.is_some() => Self::ToolError,
            CallOutcome::Result(_) => Self::Completed,
            CallOutcome::Failed(CallFailure::Cancelled) => Self::Cancelled,
            CallOutcome::Failed(CallFailure::DeadlineExceeded { .. }) => Self::Deadline,
            CallOutcome::Failed(CallFailure::OutcomeUnknown { .. }) => Self::Lost,
            CallOutcome::Error(_) | CallOutcome::Refused(_) | CallOutcome::Failed(_) => Self::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::CallOutcome;
    use shoal_protocol::RawJson;

    use super::CountedOutcome as Counted;

    #[test]
    fn results_are_counted_by_what_they_say() {
        for (text, counted) in [
            (r#"{"content":[]}"#, Counted::Completed),
            (
                r#"{"content":[{"text":"isError true"}]}"#,
                Counted::Completed,
            ),
            (r#"{"isError":true}"#, Counted::ToolError),
            (r#"{"resultType":"complete"}"#, Counted::Completed),
            (r#"{"resultType":"input_required"}"#, Counted::Parked),
        ] {
            let outcome = CallOutcome::Result(RawJson::from_static(text));
            assert_eq!(Counted::of(&outcome), counted, "{text}");
            if counted != Counted::Parked {
                assert_eq!(Counted::of_complete(&outcome), counted, "{text}");
            }
        }
    }
}
