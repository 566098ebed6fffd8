//! The actor pool: ractor's factory, with one actor for each call that can run at once.

use std::sync::Arc;
use std::time::Duration;

use ractor::concurrency::JoinHandle;
use ractor::factory::queues::DefaultQueue;
use ractor::factory::routing::QueuerRouting;
use ractor::factory::{
    DiscardHandler, DiscardReason, Factory, FactoryArguments, FactoryMessage, FactoryRef, Job,
    JobOptions, Worker, WorkerBuilder, WorkerId,
};
use ractor::{Actor, ActorProcessingErr};
use shoal_ports::{Call, CallFailure, CallId, CallOutcome};
use shoal_telemetry::metrics::{self, QueueOutcome, metrics};
use shoal_telemetry::trace::{InSpan as _, Span};
use tokio::time::Instant;

use super::config::PoolConfig;
use super::execute::{execute, is_late};
use super::measure::Measure;
use super::places::Place;
use super::record::CallRecord;
use crate::backend::Backend;

/// When an overloaded pool may be tried again. A pool that is full now is seldom empty sooner, and
/// clients that come back in the same second would only be refused again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The pool's mailbox.
pub(super) type Pool = FactoryRef<CallId, Parcel>;

type PoolFactory = Factory<
    CallId,
    Parcel,
    (),
    PoolActor,
    QueuerRouting<CallId, Parcel>,
    DefaultQueue<CallId, Parcel>,
>;

/// Boxed, because the factory moves it from hand to hand.
pub(super) type Parcel = Box<Work>;

/// A call on its way through the pool. Dropping it ends the call, whatever happened to it.
pub(super) struct Work {
    call: Call,
    record: Arc<CallRecord>,
    place: Place,
    /// Ends with the call.
    span: Span,
}

impl Work {
    pub(super) fn new(call: Call, record: Arc<CallRecord>, place: Place, span: Span) -> Self {
        Self {
            call,
            record,
            place,
            span,
        }
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

/// Starts the pool's actors.
pub(super) async fn start(
    config: &PoolConfig,
    backend: Arc<dyn Backend>,
) -> (Pool, JoinHandle<()>) {
    let arguments = FactoryArguments::builder()
        .worker_builder(Box::new(Builder {
            pool: Arc::clone(&config.pool),
            backend,
            grace: config.cancel_grace,
        }))
        .num_initial_workers(config.concurrency.max(1))
        .router(QueuerRouting::default())
        // Bounded by admission (`places.rs`), which can refuse a call before it is sent here.
        .queue(DefaultQueue::default())
        .discard_handler(Arc::new(Shed {
            pool: Arc::clone(&config.pool),
        }) as _)
        .build();
    Actor::spawn(None, PoolFactory::default(), arguments)
        .await
        .expect("a factory without a name, whose actors start without fail, starts")
}

/// Sends a call to the pool, to wait no longer than `queue_age` or its deadline.
pub(super) fn dispatch(pool: &Pool, work: Work, queue_age: Duration) {
    let left = work.call.deadline.saturating_duration_since(Instant::now());
    let options = JobOptions::new(Some(queue_age.min(left)));
    // A stopped pool hands the work back, and dropping it ends the call.
    drop(pool.dispatch_with_options(work.call.id, Box::new(work), options));
}

/// Runs what has been accepted and nothing new, then stops the pool.
pub(super) fn drain(pool: &Pool) {
    drop(pool.cast(FactoryMessage::DrainRequests));
}

struct Builder {
    pool: Arc<str>,
    backend: Arc<dyn Backend>,
    grace: Duration,
}

impl WorkerBuilder<PoolActor, ()> for Builder {
    fn build(&mut self, _wid: WorkerId) -> (PoolActor, ()) {
        let actor = PoolActor {
            pool: Arc::clone(&self.pool),
            backend: Arc::clone(&self.backend),
            grace: self.grace,
        };
        (actor, ())
    }
}

/// One of the pool's actors: runs one call at a time.
struct PoolActor {
    pool: Arc<str>,
    backend: Arc<dyn Backend>,
    grace: Duration,
}

impl Worker for PoolActor {
    type Key = CallId;
    type Message = Parcel;
    type State = ();
    type Arguments = ();

    async fn pre_start(
        &self,
        _wid: WorkerId,
        _pool: &Pool,
        (): (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    // Never an error: ractor would replace the actor, and the call would be lost.
    async fn handle(
        &self,
        _wid: WorkerId,
        _pool: &Pool,
        Job { key, msg: work, .. }: Job<CallId, Parcel>,
        (): &mut (),
    ) -> Result<CallId, ActorProcessingErr> {
        if is_late(&work.call) {
            work.waited(&self.pool, QueueOutcome::Deadline);
            work.fail(waited("its deadline"));
        } else if work.record.begin() {
            work.waited(&self.pool, QueueOutcome::Dispatched);
            let _running = work.place.run();
            let measure = Measure::begin(&self.pool, &work.call);
            let running = execute(
                &work.call,
                &work.record,
                &*self.backend,
                self.grace,
                &measure,
            );
            running.in_span(&work.span).await;
        } else {
            work.waited(&self.pool, QueueOutcome::Cancelled);
        }
        Ok(key)
    }
}

/// Ends the calls that the factory throws away.
struct Shed {
    pool: Arc<str>,
}

impl DiscardHandler<CallId, Parcel> for Shed {
    fn discard(&self, reason: DiscardReason, job: &mut Job<CallId, Parcel>) {
        let (outcome, failure) = match reason {
            DiscardReason::Shutdown => {
                let reason = "the worker is shutting down".to_owned();
                (QueueOutcome::Shed, CallFailure::NotExecuted { reason })
            }
            _ if is_late(&job.msg.call) => (QueueOutcome::Deadline, waited("its deadline")),
            _ => (QueueOutcome::Shed, waited("the limit")),
        };
        job.msg.waited(&self.pool, outcome);
        job.msg.fail(failure);
        tracing::debug!(call = %job.key, pool = %self.pool, ?reason, "call shed");
    }
}

fn waited(until: &str) -> CallFailure {
    CallFailure::Overloaded {
        reason: format!("it waited in the queue until {until}"),
        retry_after: RETRY_AFTER,
    }
}
