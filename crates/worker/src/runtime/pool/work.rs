use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt as _;
use shoal_ports::{Call, CallFailure, CallOutcome, Principal};
use shoal_telemetry::metrics::{self, QueueOutcome, metrics};
use shoal_telemetry::trace::{InSpan as _, Span};
use tokio::time::Instant;

use super::PoolInner;
use super::long_turns::TurnRequest;
use crate::runtime::admission::Permit;
use crate::runtime::execute::{execute, is_late};
use crate::runtime::measure::Measure;
use crate::runtime::overload::{RETRY_AFTER, waited};
use crate::runtime::record::CallRecord;

pub(super) type BoxedCall = Box<PooledCall>;

/// Dropping the task ends the call.
pub(in crate::runtime) struct CallTask {
    pub(in crate::runtime) future: Pin<Box<dyn Future<Output = ()> + Send>>,
    pub(in crate::runtime) call: Arc<CallRecord>,
}

/// Dropping this ends the call.
pub(in crate::runtime) struct PooledCall {
    call: Call,
    record: Arc<CallRecord>,
    _permit: Permit,
    span: Span,
}

impl PooledCall {
    pub(in crate::runtime) fn new(
        call: Call,
        record: Arc<CallRecord>,
        permit: Permit,
        span: Span,
    ) -> Self {
        Self {
            call,
            record,
            _permit: permit,
            span,
        }
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.call.caller.principal
    }

    pub(super) fn continues(&self) -> bool {
        continues(&self.call)
    }

    pub(super) fn deadline(&self) -> Instant {
        self.call.deadline
    }

    pub(super) fn admitted(&self) -> Instant {
        self.record.admitted
    }

    pub(super) fn target(&self) -> TurnRequest {
        TurnRequest {
            method: self.call.method.clone(),
            params: self.call.params.clone(),
        }
    }

    pub(super) fn run(self, pool: Arc<PoolInner>) -> CallTask {
        let call = Arc::clone(&self.record);
        let future = Box::pin(async move {
            let ran = AssertUnwindSafe(self.run_in(&pool)).catch_unwind();
            // Tool panics are caught further in, so this is a defect of the runtime.
            if ran.await.is_err() {
                tracing::error!(pool = %pool.name, "a call was lost to a defect of the worker");
            }
        });
        CallTask { future, call }
    }

    async fn run_in(&self, shared: &Arc<PoolInner>) {
        let pool = &shared.name;
        if is_late(&self.call) {
            self.waited(pool, QueueOutcome::Deadline);
            self.fail(waited("its deadline"));
        } else if self.record.begin() {
            self.waited(pool, QueueOutcome::Dispatched);
            let _slot = self.record.take_slot(shared);
            let (backend, grace) = (&*shared.backend, shared.grace);
            let measure = Measure::begin(pool, &self.call, backend.transport());
            let running = execute(&self.call, &self.record, backend, grace, &measure);
            running.in_span(&self.span).await;
        } else {
            self.waited(pool, QueueOutcome::Cancelled);
        }
    }

    pub(super) fn shed(&self, pool: &str) {
        let (outcome, failure) = match is_late(&self.call) {
            true => (QueueOutcome::Deadline, waited("its deadline")),
            false => (QueueOutcome::Shed, waited("the limit")),
        };
        self.waited(pool, outcome);
        self.fail(failure);
        tracing::debug!(call = %self.record.id, pool, "a call waited too long and was shed");
    }

    pub(super) fn make_room(&self, pool: &str) {
        self.waited(pool, QueueOutcome::Shed);
        self.fail(CallFailure::overloaded(
            format!("the queue of pool {pool} is full, and others have fewer calls in it"),
            RETRY_AFTER,
        ));
    }

    pub(super) fn shut_out(&self, pool: &str) {
        self.waited(pool, QueueOutcome::Shed);
        let reason = "the worker is shutting down".to_owned();
        self.fail(CallFailure::NotExecuted { reason });
    }

    fn waited(&self, pool: &str, outcome: QueueOutcome) {
        if metrics::enabled() {
            let took = self.record.admitted.elapsed();
            metrics().pools.waited(took, pool, outcome);
        }
    }

    fn fail(&self, failure: CallFailure) {
        self.record.finish(CallOutcome::Failed(failure));
    }
}

pub(super) fn continues(call: &Call) -> bool {
    let params = call.params.as_ref();
    params.is_some_and(|params| params.member("inputResponses").is_some())
}

impl Drop for PooledCall {
    fn drop(&mut self) {
        if !self.record.has_ended() {
            self.fail(self.record.lost("its worker was stopped"));
        }
    }
}
