//! Pools, their workers and their queues.

use std::time::Duration;

use super::area::area;
use super::definition::{MCP_SECONDS, WAIT_SECONDS};
use super::journal::AttachOutcome;
use super::known::Pool;

mod values;

pub use values::{
    CircuitState, CountedOutcome, QueueOutcome, RetryReason, ShedReason, WorkerState,
};

area! {
    /// Pools, their workers and their queues.
    PoolMetrics {
        /// How many calls run, by pool.
        pub observe_in_flight: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.in_flight", "{call}", "Calls of this node that run at the pool's workers.";
        /// How many calls wait, by pool.
        pub observe_queued: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.queued", "{call}", "Calls that wait for a free worker.";
        /// How many calls wait for a pool without workers to have one, by pool.
        pub observe_awaiting: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.awaiting", "{call}",
            "Calls that wait for a pool scaled to zero.";
        /// How many calls could run at once, by pool.
        pub observe_capacity: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.capacity", "{call}", "Calls that the pool can run at once.";
        /// How long the call that waits longest has waited, by pool.
        pub observe_queue_age: Gauge(Duration) [pool: Pool]
            = "shoal.pool.queue.age", "s", "Age of the oldest waiting call.";
        /// How many workers there are, by pool and state.
        pub observe_workers: UpDownCounter(u64) [pool: Pool, state: WorkerState]
            = "shoal.pool.workers", "{worker}", "Workers that this node knows.";
        /// How many circuit breakers there are, by pool and state.
        pub observe_circuits: UpDownCounter(u64) [pool: Pool, state: CircuitState]
            = "shoal.pool.circuits", "{worker}", "Workers, by state of their circuit breaker.";
        /// A call no longer waits for a worker.
        pub waited: Histogram(WAIT_SECONDS) [pool: Pool, outcome: QueueOutcome]
            = "shoal.pool.queue.duration", "s",
            "Wait for a free worker.";
        /// A call is over.
        pub called: Histogram(MCP_SECONDS) [pool: Pool, outcome: CountedOutcome]
            = "shoal.pool.call.duration", "s",
            "Calls from dispatch to result, all attempts included.";
        /// A call was turned away.
        pub shed: Counter [pool: Pool, reason: ShedReason]
            = "shoal.pool.sheds", "{call}", "Calls refused before they started.";
        /// A call was sent once more.
        pub retried: Counter [pool: Pool, reason: RetryReason]
            = "shoal.pool.retries", "{attempt}", "Calls sent to a worker again.";
        /// The circuit breaker of a worker opened.
        pub circuit_opened: Counter [pool: Pool]
            = "shoal.pool.circuit.opened", "{opening}",
            "Times that a worker's circuit breaker opened.";
        /// A running call was looked for at its worker.
        pub attached: Counter [pool: Pool, outcome: AttachOutcome]
            = "shoal.pool.attaches", "{attempt}",
            "Attempts to reattach to a running call.";
    }
}
