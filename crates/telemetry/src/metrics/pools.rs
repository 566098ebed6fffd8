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
            = "shoal.pool.in_flight", "{call}", "Calls that run at the workers of a pool, sent by this node.";
        /// How many calls wait, by pool.
        pub observe_queued: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.queued", "{call}", "Calls that wait for a free worker of a pool.";
        /// How many calls wait for a pool without workers to have one, by pool.
        pub observe_awaiting: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.awaiting", "{call}",
            "Calls at this node that wait for a pool which has scaled to zero to have a worker.";
        /// How many calls could run at once, by pool.
        pub observe_capacity: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.capacity", "{call}", "Calls that the workers of a pool can run at once.";
        /// How long the call that waits longest has waited, by pool.
        pub observe_queue_age: Gauge(Duration) [pool: Pool]
            = "shoal.pool.queue.age", "s", "How long the call that waits longest has waited.";
        /// How many workers there are, by pool and state.
        pub observe_workers: UpDownCounter(u64) [pool: Pool, state: WorkerState]
            = "shoal.pool.workers", "{worker}", "Workers of a pool that this node knows.";
        /// How many circuit breakers there are, by pool and state.
        pub observe_circuits: UpDownCounter(u64) [pool: Pool, state: CircuitState]
            = "shoal.pool.circuits", "{worker}", "Workers of a pool by the state of their circuit breaker.";
        /// A call no longer waits for a worker.
        pub waited: Histogram(WAIT_SECONDS) [pool: Pool, outcome: QueueOutcome]
            = "shoal.pool.queue.duration", "s",
            "How long calls waited for a free worker, by how the wait ended.";
        /// A call is over.
        pub called: Histogram(MCP_SECONDS) [pool: Pool, outcome: CountedOutcome]
            = "shoal.pool.call.duration", "s",
            "Calls at their workers, with every attempt, from dispatch to result.";
        /// A call was turned away.
        pub shed: Counter [pool: Pool, reason: ShedReason]
            = "shoal.pool.sheds", "{call}", "Calls that were turned away without being started.";
        /// A call was sent once more.
        pub retried: Counter [pool: Pool, reason: RetryReason]
            = "shoal.pool.retries", "{attempt}", "Calls that were sent to a worker once more.";
        /// The circuit breaker of a worker opened.
        pub circuit_opened: Counter [pool: Pool]
            = "shoal.pool.circuit.opened", "{opening}",
            "Circuit breakers of workers that opened, each time that one did.";
        /// A running call was looked for at its worker.
        pub attached: Counter [pool: Pool, outcome: AttachOutcome]
            = "shoal.pool.attaches", "{attempt}",
            "Attempts to go on with a call at the worker that runs it.";
    }
}
