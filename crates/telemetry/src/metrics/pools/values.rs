use shoal_ports::{CallFailure, CallOutcome};

use crate::metrics::Failure;
use crate::metrics::labels::{OUTCOME, REASON, STATE, labels};

labels! {
    /// The state of a worker.
    WorkerState: STATE {
        /// Ready.
        Ready = "ready",
        /// Backend not ready yet.
        Starting = "starting",
        /// Draining.
        Draining = "draining",
        /// Connection down.
        Unreachable = "unreachable",
    }
}

labels! {
    /// Whether calls go to a worker.
    CircuitState: STATE {
        /// Closed.
        Closed = "closed",
        /// For at least one pair of caller and tool, no calls pass.
        Open = "open",
        /// Half open.
        HalfOpen = "half_open",
    }
}

labels! {
    /// How a call's wait for a worker ended.
    QueueOutcome: OUTCOME {
        /// Dispatched.
        Dispatched = "dispatched",
        /// Shoal refused the call.
        Shed = "shed",
        /// Cancelled.
        Cancelled = "cancelled",
        /// Deadline.
        Deadline = "deadline",
    }
}

labels! {
    /// The outcome of a call, as it is counted.
    CountedOutcome: OUTCOME {
        /// Completed.
        Completed = "completed",
        /// A result with `isError`.
        ToolError = "tool_error",
        /// JSON-RPC error.
        Error = "error",
        /// Cancelled.
        Cancelled = "cancelled",
        /// Deadline.
        Deadline = "deadline",
        /// Worker lost, outcome unknown.
        Lost = "lost",
        /// Waits for its client's answer.
        Parked = "parked",
    }
}

labels! {
    /// Why a call was refused.
    ShedReason: REASON {
        /// Queue full.
        QueueFull = "queue_full",
        /// The call waited longer than the pool's `queue_age`, or would have.
        QueueTimeout = "queue_timeout",
        /// No worker.
        NoWorker = "no_worker",
        /// Every worker's circuit breaker is open.
        CircuitOpen = "circuit_open",
        /// Draining.
        Draining = "draining",
    }
}

labels! {
    /// Why a call was sent again.
    RetryReason: REASON {
        /// Worker lost before it accepted the call.
        NotStarted = "not_started",
        /// Worker lost; the call is safe to repeat.
        WorkerLost = "worker_lost",
        /// Worker full.
        Busy = "busy",
        /// Draining.
        Draining = "draining",
        /// Server failed before the call had an effect.
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
