//! The workers of this process, as they see their calls themselves.

use std::time::Duration;

use super::definition::{Attribute, Kind, MCP_SECONDS, definitions};
use super::instrument::{Counter, Factory, Histogram};
use super::known::{Known, NameKind};
use super::labels::{OUTCOME, POOL, Pair, REASON, label};
use super::observed::{Observed, Registration, float};
use super::pools::{CountedOutcome, ShedReason};

const POOLS: Attribute = Attribute::configured(POOL, "the pools");

definitions! {
    RUNNING = Kind::UpDownCounter, "shoal.worker.running", "{call}",
        "Calls that run at the workers of this process, whoever sent them.", [POOLS];
    CALLS = Kind::Histogram(MCP_SECONDS), "shoal.worker.call.duration", "s",
        "Calls at the backends of this process, without the time that they waited for a free place.",
        [POOLS, Attribute::one_of(OUTCOME, CountedOutcome::VALUES)];
    REFUSED = Kind::Counter, "shoal.worker.refused", "{call}",
        "Calls that a worker of this process did not admit.",
        [POOLS, Attribute::one_of(REASON, ShedReason::VALUES)];
    RESTARTS = Kind::Counter, "shoal.worker.backend.restarts", "{restart}",
        "Restarts of the MCP server behind a pool, after it ended or could not be started.", [POOLS];
}

/// The workers of this process.
#[derive(Debug)]
pub struct WorkerMetrics {
    running: Observed,
    calls: Histogram,
    refused: Counter,
    restarts: Observed,
    known: Known,
}

impl WorkerMetrics {
    pub(super) fn new(factory: &Factory, known: &Known) -> Self {
        Self {
            running: factory.observed(&RUNNING),
            calls: factory.histogram(&CALLS),
            refused: factory.counter(&REFUSED),
            restarts: factory.observed(&RESTARTS),
            known: known.clone(),
        }
    }

    /// How many calls run, by pool.
    pub fn observe_running(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.by_pool(&self.running, read)
    }

    /// How often the backend was restarted since the worker began, by pool.
    pub fn observe_restarts(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.by_pool(&self.restarts, read)
    }

    /// A call that ran is over.
    pub fn ran(&self, pool: &str, duration: Duration, outcome: CountedOutcome) {
        (self.calls).record(duration, || self.two(pool, OUTCOME, outcome.as_str()));
    }

    /// A call was not admitted.
    pub fn refused(&self, pool: &str, reason: ShedReason) {
        (self.refused).add(1, || self.two(pool, REASON, reason.as_str()));
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
}
