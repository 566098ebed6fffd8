//! A call on its way through the pool.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt as _;
use shoal_ports::{Call, CallFailure, CallOutcome, Principal};
use shoal_telemetry::metrics::{self, QueueOutcome, metrics};
use shoal_telemetry::trace::{InSpan as _, Span};
use tokio::time::Instant;

use super::turn::Target;
use super::{RETRY_AFTER, Shared, waited};
use crate::runtime::admission::Permit;
use crate::runtime::execute::{execute, is_late};
use crate::runtime::measure::Measure;
use crate::runtime::record::CallRecord;

/// Boxed, because it goes from hand to hand.
pub(super) type BoxedCall = Box<PooledCall>;

/// A call that runs; dropping it ends the call.
pub(in crate::runtime) struct CallTask {
    pub(in crate::runtime) future: Pin<Box<dyn Future<Output = ()> + Send>>,
    pub(in crate::runtime) call: Arc<CallRecord>,
}

/// A call on its way through the pool. Dropping it ends the call, whatever happened to it.
pub(in crate::runtime) struct PooledCall {
    call: Call,
    record: Arc<CallRecord>,
    _permit: Permit,
    /// Ends with the call.
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

    /// Whose call it is.
    pub(super) fn principal(&self) -> &Principal {
        &self.call.caller.principal
    }

    /// Whether the call has been run before, up to what its client was asked.
    pub(super) fn continues(&self) -> bool {
        continues(&self.call)
    }

    /// When the call must have ended.
    pub(super) fn deadline(&self) -> Instant {
        self.call.deadline
    }

    /// When the call was admitted.
    pub(super) fn admitted(&self) -> Instant {
        self.record.admitted
    }

    /// What the call is of.
    pub(super) fn target(&self) -> Target {
        Target {
            method: self.call.method.clone(),
            params: self.call.params.clone(),
        }
    }

    /// Runs the call, unless it has ended while it waited. It has ended when this has.
    pub(super) fn run(self, pool: Arc<Shared>) -> CallTask {
        let call = Arc::clone(&self.record);
        let future = Box::pin(async move {
            let ran = AssertUnwindSafe(self.run_in(&pool)).catch_unwind();
            // A tool that panics has been caught before; this is the runtime's own.
            if ran.await.is_err() {
                tracing::error!(pool = %pool.name, "a call was lost to a defect of the worker");
            }
        });
        CallTask { future, call }
    }

    async fn run_in(&self, shared: &Arc<Shared>) {
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

    /// Ends the call because it waited too long.
    pub(super) fn shed(&self, pool: &str) {
        let (outcome, failure) = match is_late(&self.call) {
            true => (QueueOutcome::Deadline, waited("its deadline")),
            false => (QueueOutcome::Shed, waited("the limit")),
        };
        self.waited(pool, outcome);
        self.fail(failure);
        tracing::debug!(call = %self.record.id, pool, "a call waited too long and was shed");
    }

    /// Ends the call to make room for a principal that has fewer waiting.
    pub(super) fn make_room(&self, pool: &str) {
        self.waited(pool, QueueOutcome::Shed);
        self.fail(CallFailure::overloaded(
            format!("the queue of pool {pool} is full, and others have fewer calls in it"),
            RETRY_AFTER,
        ));
    }

    /// Ends the call because the pool takes none any more.
    pub(super) fn shut_out(&self, pool: &str) {
        self.waited(pool, QueueOutcome::Shed);
        let reason = "the worker is shutting down".to_owned();
        self.fail(CallFailure::NotExecuted { reason });
    }

    /// The call does not wait any more.
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

/// Whether a call brings answers to what it asked when it was run before.
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
