//! Reports attempts to metrics and the call's span.

use std::sync::Arc;

use shoal_ports::{CallFailure, Retry};
use shoal_telemetry::metrics::{RetryReason, ShedReason, metrics};
use shoal_telemetry::trace::attributes as key;

use super::CallOrigin;
use super::attempt_state::AttemptState;
use crate::pools::{CircuitState, PoolMember};

pub(crate) struct NotStarted {
    pub(crate) failure: CallFailure,
    /// The pool is empty if the call has none.
    pub(crate) pool: Arc<str>,
    pub(crate) reason: ShedReason,
    pub(crate) goes_on_elsewhere: bool,
}

impl NotStarted {
    /// Counts the call as refused if no worker can have executed it.
    pub(crate) fn give_up(self) -> CallFailure {
        if self.failure.retry() == Retry::Always {
            metrics().pools.shed(&self.pool, self.reason);
        }
        self.failure
    }
}

impl CallOrigin {
    pub(super) fn tries(&mut self, member: &PoolMember) {
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

    pub(super) fn failed(&mut self, failure: &CallFailure, member: &PoolMember) {
        (self.attempt_state.repeats, self.attempt_state.shed) = judge(failure, member);
    }

    pub(super) fn broke(&mut self) {
        self.attempt_state.repeats = Some(RetryReason::WorkerLost);
        self.span.add_event("connection lost", |_| ());
    }

    pub(super) fn goes_on(&mut self) {
        self.attempt_state = AttemptState::default();
    }

    /// Keeps the reason of an earlier worker's refusal.
    pub(super) fn nobody(&mut self, reason: ShedReason) {
        self.attempt_state.shed.get_or_insert(reason);
    }

    pub(super) fn circuit(&mut self, member: &PoolMember, changed: Option<CircuitState>) {
        let event = match changed {
            None | Some(CircuitState::HalfOpen) => return,
            Some(CircuitState::Open) => {
                metrics().pools.circuit_opened(&member.pool);
                let (method, tool) = (self.call.method.as_str(), self.tool.as_deref());
                tracing::warn!(worker = %member.id, method, tool, "a caller's calls failed too often in a row at a worker; the worker gets no more of them for a while");
                "circuit opened"
            }
            Some(CircuitState::Closed) => "circuit closed",
        };
        self.span.add_event(event, |set| {
            set.set(key::WORKER, member.id.as_str());
        });
    }

    pub(super) fn turned_away(&self, failure: &CallFailure) {
        // The worker had queued the call, because a full queue would have refused it at its start.
        if matches!(failure, CallFailure::Overloaded { .. }) {
            metrics().pools.shed(&self.pool, ShedReason::QueueTimeout);
        }
    }

    pub(super) fn not_started(&self, failure: CallFailure) -> NotStarted {
        NotStarted {
            failure: self.told(failure),
            pool: self.pool.clone(),
            reason: self.attempt_state.shed.unwrap_or(ShedReason::NoWorker),
            goes_on_elsewhere: false,
        }
    }
}

fn judge(failure: &CallFailure, member: &PoolMember) -> (Option<RetryReason>, Option<ShedReason>) {
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
