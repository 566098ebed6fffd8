//! A call on its way through the pool.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Call, CallFailure, CallOutcome};
use shoal_telemetry::metrics::{self, QueueOutcome, metrics};
use shoal_telemetry::trace::{InSpan as _, Span};
use tokio::time::Instant;

use super::waited;
use crate::backend::Backend;
use crate::runtime::execute::{execute, is_late};
use crate::runtime::measure::Measure;
use crate::runtime::places::Place;
use crate::runtime::record::CallRecord;

/// Boxed, because it goes from hand to hand.
pub(super) type Parcel = Box<Work>;

/// A call on its way through the pool. Dropping it ends the call, whatever happened to it.
pub(in crate::runtime) struct Work {
    call: Call,
    record: Arc<CallRecord>,
    place: Place,
    /// Ends with the call.
    span: Span,
}

impl Work {
    pub(in crate::runtime) fn new(
        call: Call,
        record: Arc<CallRecord>,
        place: Place,
        span: Span,
    ) -> Self {
        Self {
            call,
            record,
            place,
            span,
        }
    }

    /// When the call must have ended.
    pub(super) fn deadline(&self) -> Instant {
        self.call.deadline
    }

    /// Runs the call, unless it has ended while it waited.
    pub(super) async fn run(&self, pool: &str, backend: &dyn Backend, grace: Duration) {
        if is_late(&self.call) {
            self.waited(pool, QueueOutcome::Deadline);
            self.fail(waited("its deadline"));
        } else if self.record.begin() {
            self.waited(pool, QueueOutcome::Dispatched);
            let _running = self.place.run();
            let measure = Measure::begin(pool, &self.call);
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
            metrics().pools.waited(pool, took, outcome);
        }
    }

    fn fail(&self, failure: CallFailure) {
        self.record.finish(CallOutcome::Failed(failure));
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.record.has_ended() {
            self.fail(self.record.lost("its worker was stopped"));
        }
    }
}
