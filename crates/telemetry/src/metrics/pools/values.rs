//! What can happen to a call and to a worker.

use shoal_ports::{CallFailure, CallOutcome};

use crate::metrics::Failure;
use crate::metrics::labels::{OUTCOME, REASON, STATE, labels};

labels! {
    /// What a worker can do.
    WorkerState: STATE {
        /// It takes calls.
        Ready = "ready",
        /// It is there, and its backend is not ready yet.
        Starting = "starting",
        /// It finishes its calls and takes no more.
        Draining = "draining",
        /// It is known, and its link is down.
        Unreachable = "unreachable",
    }
}

labels! {
    /// Whether calls go to a worker.
    CircuitState: STATE {
        /// Every call.
        Closed = "closed",
        /// None, for a while.
        Open = "open",
        /// One, to see whether the worker is well again.
        HalfOpen = "half_open",
    }
}

labels! {
    /// How a wait ended.
    QueueOutcome: OUTCOME {
        /// The call went to a worker.
        Dispatched = "dispatched",
        /// It was turned away.
        Shed = "shed",
        /// The client gave up.
        Cancelled = "cancelled",
        /// The deadline passed.
        Deadline = "deadline",
    }
}

labels! {
    /// How a call ended, as it is counted.
    CountedOutcome: OUTCOME {
        /// With a result.
        Completed = "completed",
        /// With a tool's result that is an error.
        ToolError = "tool_error",
        /// With a JSON-RPC error.
        Error = "error",
        /// The client cancelled it.
        Cancelled = "cancelled",
        /// The deadline passed.
        Deadline = "deadline",
        /// Its worker is lost, and nobody knows whether it took effect.
        Lost = "lost",
        /// It waits for the client's answer.
        Parked = "parked",
    }
}

labels! {
    /// Why a call was turned away.
    ShedReason: REASON {
        /// The queue is full.
        QueueFull = "queue_full",
        /// It waited as long as a call may wait.
        QueueTimeout = "queue_timeout",
        /// The pool has no worker.
        NoWorker = "no_worker",
        /// The circuit of every worker is open.
        CircuitOpen = "circuit_open",
        /// The pool is stopping.
        Draining = "draining",
    }
}

labels! {
    /// Why a call was sent once more.
    RetryReason: REASON {
        /// The worker was lost before it took the call.
        NotStarted = "not_started",
        /// The worker was lost, and the call is safe to repeat.
        WorkerLost = "worker_lost",
        /// The worker had no room.
        Busy = "busy",
        /// The worker was stopping.
        Draining = "draining",
        /// The backend failed before it did anything.
        BackendFailed = "backend_failed",
    }
}

impl CountedOutcome {
    /// How the call is counted that ended so. A result is searched.
    #[must_use]
    pub fn of(outcome: &CallOutcome) -> Self {
        Self::with(outcome, Failure::of(outcome))
    }

    /// Like [`of`](Self::of), where it is known already how the call failed.
    #[must_use]
    pub fn with(outcome: &CallOutcome, failure: Option<Failure>) -> Self {
        match Self::complete(outcome, failure) {
            Self::Completed if outcome.asks_for_input() => Self::Parked,
            counted => counted,
        }
    }

    /// Like [`of`](Self::of), where it is known already that a result does not ask for input.
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
