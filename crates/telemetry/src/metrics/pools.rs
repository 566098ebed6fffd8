//! Pools, their workers and their queues.

use std::time::Duration;

use super::definition::{Attribute, Kind, MCP_SECONDS, WAIT_SECONDS, definitions};
use super::instrument::{Counter, Factory, Histogram};
use super::journal::AttachOutcome;
use super::known::{Known, NameKind};
use super::labels::{Label, OUTCOME, POOL, Pair, REASON, STATE, label};
use super::observed::{Observed, Registration, float};

mod values;

pub use values::{
    CircuitState, CountedOutcome, QueueOutcome, RetryReason, ShedReason, WorkerState,
};

const POOLS: Attribute = Attribute::configured(POOL, "the pools");

definitions! {
    IN_FLIGHT = Kind::UpDownCounter, "shoal.pool.in_flight", "{call}",
        "Calls that run at the workers of a pool, sent by this node.", [POOLS];
    QUEUED = Kind::UpDownCounter, "shoal.pool.queued", "{call}",
        "Calls that wait for a free worker of a pool.", [POOLS];
    CAPACITY = Kind::UpDownCounter, "shoal.pool.capacity", "{call}",
        "Calls that the workers of a pool can run at once.", [POOLS];
    OLDEST = Kind::Gauge, "shoal.pool.queue.age", "s",
        "How long the call that waits longest has waited.", [POOLS];
    WORKERS = Kind::UpDownCounter, "shoal.pool.workers", "{worker}",
        "Workers of a pool that this node knows.",
        [POOLS, Attribute::one_of(STATE, WorkerState::VALUES)];
    CIRCUITS = Kind::UpDownCounter, "shoal.pool.circuits", "{worker}",
        "Workers of a pool by the state of their circuit breaker.",
        [POOLS, Attribute::one_of(STATE, CircuitState::VALUES)];
    QUEUE = Kind::Histogram(WAIT_SECONDS), "shoal.pool.queue.duration", "s",
        "How long calls waited for a free worker, by how the wait ended.",
        [POOLS, Attribute::one_of(OUTCOME, QueueOutcome::VALUES)];
    CALLS = Kind::Histogram(MCP_SECONDS), "shoal.pool.call.duration", "s",
        "Calls at their workers, with every attempt, from dispatch to result.",
        [POOLS, Attribute::one_of(OUTCOME, CountedOutcome::VALUES)];
    SHEDS = Kind::Counter, "shoal.pool.sheds", "{call}",
        "Calls that were turned away without being started.",
        [POOLS, Attribute::one_of(REASON, ShedReason::VALUES)];
    RETRIES = Kind::Counter, "shoal.pool.retries", "{attempt}",
        "Calls that were sent to a worker once more.",
        [POOLS, Attribute::one_of(REASON, RetryReason::VALUES)];
    OPENED = Kind::Counter, "shoal.pool.circuit.opened", "{opening}",
        "Circuit breakers of workers that opened, each time that one did.", [POOLS];
    ATTACHES = Kind::Counter, "shoal.pool.attaches", "{attempt}",
        "Attempts to go on with a call at the worker that runs it.",
        [POOLS, Attribute::one_of(OUTCOME, AttachOutcome::VALUES)];
}

/// Pools, their workers and their queues.
#[derive(Debug)]
pub struct PoolMetrics {
    in_flight: Observed,
    queued: Observed,
    capacity: Observed,
    oldest: Observed,
    workers: Observed,
    circuits: Observed,
    queue: Histogram,
    calls: Histogram,
    sheds: Counter,
    retries: Counter,
    opened: Counter,
    attaches: Counter,
    known: Known,
}

impl PoolMetrics {
    pub(super) fn new(factory: &Factory, known: &Known) -> Self {
        Self {
            in_flight: factory.observed(&IN_FLIGHT),
            queued: factory.observed(&QUEUED),
            capacity: factory.observed(&CAPACITY),
            oldest: factory.observed(&OLDEST),
            workers: factory.observed(&WORKERS),
            circuits: factory.observed(&CIRCUITS),
            queue: factory.histogram(&QUEUE),
            calls: factory.histogram(&CALLS),
            sheds: factory.counter(&SHEDS),
            retries: factory.counter(&RETRIES),
            opened: factory.counter(&OPENED),
            attaches: factory.counter(&ATTACHES),
            known: known.clone(),
        }
    }

    /// How many calls run, by pool.
    pub fn observe_in_flight(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.by_pool(&self.in_flight, read)
    }

    /// How many calls wait, by pool.
    pub fn observe_queued(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.by_pool(&self.queued, read)
    }

    /// How many calls could run at once, by pool.
    pub fn observe_capacity(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.by_pool(&self.capacity, read)
    }

    /// How long the call that waits longest has waited, by pool.
    pub fn observe_queue_age(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, Duration)) + Send + Sync + 'static,
    ) -> Registration {
        let known = self.known.clone();
        self.oldest.observe(move |to| {
            read(&mut |pool: &str, age| {
                to(
                    age.as_secs_f64(),
                    vec![known.label(NameKind::Pool, POOL, pool)],
                );
            });
        })
    }

    /// How many workers there are, by pool and state.
    pub fn observe_workers(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, WorkerState, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.by_pool_and_state(&self.workers, read)
    }

    /// How many circuit breakers there are, by pool and state.
    pub fn observe_circuits(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, CircuitState, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.by_pool_and_state(&self.circuits, read)
    }

    /// A call no longer waits for a worker.
    pub fn waited(&self, pool: &str, duration: Duration, outcome: QueueOutcome) {
        (self.queue).record(duration, || self.two(pool, OUTCOME, outcome.as_str()));
    }

    /// A call is over.
    pub fn called(&self, pool: &str, duration: Duration, outcome: CountedOutcome) {
        (self.calls).record(duration, || self.two(pool, OUTCOME, outcome.as_str()));
    }

    /// A call was turned away.
    pub fn shed(&self, pool: &str, reason: ShedReason) {
        (self.sheds).add(1, || self.two(pool, REASON, reason.as_str()));
    }

    /// A call was sent once more.
    pub fn retried(&self, pool: &str, reason: RetryReason) {
        (self.retries).add(1, || self.two(pool, REASON, reason.as_str()));
    }

    /// The circuit breaker of a worker opened.
    pub fn circuit_opened(&self, pool: &str) {
        (self.opened).add(1, || [self.known.label(NameKind::Pool, POOL, pool)]);
    }

    /// A running call was looked for at its worker.
    pub fn attached(&self, pool: &str, outcome: AttachOutcome) {
        (self.attaches).add(1, || self.two(pool, OUTCOME, outcome.as_str()));
    }

    fn two(&self, pool: &str, key: &'static str, value: &'static str) -> [Pair; 2] {
        [
            self.known.label(NameKind::Pool, POOL, pool),
            label(key, value),
        ]
    }

    fn by_pool(
        &self,
        observed: &Observed,
        read: impl Fn(&mut dyn FnMut(&str, u64)) + Send + Sync + 'static,
    ) -> Registration {
        let known = self.known.clone();
        observed.observe(move |to| {
            read(&mut |pool: &str, count| {
                to(float(count), vec![known.label(NameKind::Pool, POOL, pool)]);
            });
        })
    }

    fn by_pool_and_state<L: Label>(
        &self,
        observed: &Observed,
        read: impl Fn(&mut dyn FnMut(&str, L, u64)) + Send + Sync + 'static,
    ) -> Registration {
        let known = self.known.clone();
        observed.observe(move |to| {
            read(&mut |pool: &str, state: L, count| {
                let attributes = vec![
                    known.label(NameKind::Pool, POOL, pool),
                    label(STATE, state.text()),
                ];
                to(float(count), attributes);
            });
        })
    }
}
