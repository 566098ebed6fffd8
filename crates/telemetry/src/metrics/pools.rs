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
    /// The metrics of pools.
    PoolMetrics {
        /// Observes running calls.
        pub observe_in_flight: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.in_flight", "{call}", "This node's calls at the pool's workers.";
        /// Observes calls that wait for a free worker.
        pub observe_queued: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.queued", "{call}", "Calls that wait in this process's queues.";
        /// Observes calls that wait for a first worker.
        pub observe_awaiting: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.awaiting", "{call}", "Calls that wait for a pool scaled to zero.";
        /// Observes the capacity in calls.
        pub observe_capacity: UpDownCounter(u64) [pool: Pool]
            = "shoal.pool.capacity", "{call}", "Maximum concurrent calls in this process.";
        /// Observes the age of the oldest waiting call.
        pub observe_queue_age: Gauge(Duration) [pool: Pool]
            = "shoal.pool.queue.age", "s", "Longest current wait in this process's queues.";
        /// Observes known workers.
        pub observe_workers: UpDownCounter(u64) [pool: Pool, state: WorkerState]
            = "shoal.pool.workers", "{worker}", "Known workers.";
        /// Observes circuit breakers.
        pub observe_circuits: UpDownCounter(u64) [pool: Pool, state: CircuitState]
            = "shoal.pool.circuits", "{worker}", "Workers by their circuit breaker's state.";
        /// Records a call's wait for a worker.
        pub waited: Histogram(WAIT_SECONDS) [pool: Pool, outcome: QueueOutcome]
            = "shoal.pool.queue.duration", "s", "Time that calls wait in a worker's queue.";
        /// Records a call's duration.
        pub called: Histogram(MCP_SECONDS) [pool: Pool, outcome: CountedOutcome]
            = "shoal.pool.call.duration", "s", "Time of calls from dispatch to result, including all attempts.";
        /// Counts a call refused before it started.
        pub shed: Counter [pool: Pool, reason: ShedReason]
            = "shoal.pool.sheds", "{call}", "Calls refused before they started.";
        /// Counts a call sent again.
        pub retried: Counter [pool: Pool, reason: RetryReason]
            = "shoal.pool.retries", "{attempt}", "Calls sent again.";
        /// Counts a circuit breaker that opened.
        pub circuit_opened: Counter [pool: Pool]
            = "shoal.pool.circuit.opened", "{opening}",
            "Opened circuit breakers.";
        /// Counts an attempt to reattach to a running call.
        pub attached: Counter [pool: Pool, outcome: AttachOutcome]
            = "shoal.pool.attaches", "{attempt}", "Attempts to reattach to a call at the pool's workers.";
    }
}
