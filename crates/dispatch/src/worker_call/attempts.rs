//! What metrics and a call's span are told of the attempts at it.

use std::sync::Arc;

use shoal_ports::{CallFailure, Retry};
use shoal_telemetry::metrics::{RetryReason, ShedReason, metrics};
use shoal_telemetry::trace::attributes as key;

use super::Origin;
use crate::pools::{CircuitState, Member};

/// What is remembered from one attempt to the next.
#[derive(Default)]
pub(super) struct AttemptState {
    /// Why the next attempt repeats the one before, if there is a next one.
    repeats: Option<RetryReason>,
    /// Why the call was turned away, if it goes no further.
    shed: Option<ShedReason>,
}

/// A call that no worker has taken.
pub(crate) struct NotStarted {
    pub(crate) failure: CallFailure,
    /// Empty where none was found for it.
    pub(crate) pool: Arc<str>,
    pub(crate) reason: ShedReason,
    /// Whether another request goes on with the call.
    pub(crate) goes_on_elsewhere: bool,
}

impl NotStarted {
    /// The call is given up. It counts as turned away if it certainly was not executed.
    pub(crate) fn give_up(self) -> CallFailure {
        if self.failure.retry() == Retry::Safe {
            metrics().pools.shed(&self.pool, self.reason);
        }
        self.failure
    }
}

impl Origin {
    /// A worker is asked to run the call: again, if an attempt before this has failed.
    pub(super) fn tries(&mut self, member: &Member) {
        self.attempt_state.shed = None;
        let Some(reason) = self.attempt_state.repeats.take() else {
            return;
        };
        metrics().pools.retried(&self.pool, reason);
        self.span.add_event("retry", |set| {
            set.set(key::REASON, reason.as_str())
                .set(key::WORKER, member.id.as_str());
        });
    }

    /// The attempt came to nothing; whether there is another one is not known yet.
    pub(super) fn failed(&mut self, failure: &CallFailure, member: &Member) {
        (self.attempt_state.repeats, self.attempt_state.shed) = judge(failure, member);
    }

    /// The way to the worker broke, and the call may be run again.
    pub(super) fn broke(&mut self) {
        self.attempt_state.repeats = Some(RetryReason::WorkerLost);
        self.span.add_event("connection lost", |_| ());
    }

    /// The call runs.
    pub(super) fn goes_on(&mut self) {
        self.attempt_state = AttemptState::default();
    }

    /// There is nobody to ask, for this reason; what a worker has said before is more to the point.
    pub(super) fn nobody(&mut self, reason: ShedReason) {
        self.attempt_state.shed.get_or_insert(reason);
    }

    /// What the call did may have changed the worker's circuit.
    pub(super) fn circuit(&mut self, member: &Member, changed: Option<CircuitState>) {
        let event = match changed {
            None | Some(CircuitState::HalfOpen) => return,
            Some(CircuitState::Open) => {
                metrics().pools.circuit_opened(&member.pool);
                let (method, tool) = (self.call.method.as_str(), self.tool.as_deref());
                tracing::warn!(worker = %member.id, method, tool, "calls of one caller failed too often in a row at a worker, which gets no more of them for a while");
                "circuit opened"
            }
            Some(CircuitState::Closed) => "circuit closed",
        };
        self.span.add_event(event, |set| {
            set.set(key::WORKER, member.id.as_str());
        });
    }

    /// A worker that had taken the call has given it back, and nobody else takes it.
    pub(super) fn turned_away(&self, failure: &CallFailure) {
        // A full queue would have been said at once.
        if matches!(failure, CallFailure::Overloaded { .. }) {
            metrics().pools.shed(&self.pool, ShedReason::QueueTimeout);
        }
    }

    /// No worker has taken the call.
    pub(super) fn not_started(&self, failure: CallFailure) -> NotStarted {
        NotStarted {
            failure: self.told(failure),
            pool: self.pool.clone(),
            reason: self.attempt_state.shed.unwrap_or(ShedReason::NoWorker),
            goes_on_elsewhere: false,
        }
    }
}

/// Why a call is repeated after this, if it is; and why it was turned away, if it is not.
fn judge(failure: &CallFailure, member: &Member) -> (Option<RetryReason>, Option<ShedReason>) {
    match failure {
        CallFailure::Overloaded { .. } => (Some(RetryReason::Busy), Some(ShedReason::QueueFull)),
        CallFailure::NotExecuted { .. } if member.is_leaving() => {
            (Some(RetryReason::Draining), Some(ShedReason::Draining))
        }
        CallFailure::NotExecuted { .. } if !member.is_reachable() => {
            (Some(RetryReason::NotStarted), Some(ShedReason::NoWorker))
        }
        CallFailure::WorkerAway { .. } => {
            (Some(RetryReason::NotStarted), Some(ShedReason::NoWorker))
        }
        CallFailure::NotExecuted { .. } => {
            (Some(RetryReason::BackendFailed), Some(ShedReason::NoWorker))
        }
        CallFailure::OutcomeUnknown { .. } => (Some(RetryReason::WorkerLost), None),
        CallFailure::NotReady { .. }
        | CallFailure::DeadlineExceeded { .. }
        | CallFailure::Cancelled
        | CallFailure::Superseded { .. } => (None, None),
    }
}
