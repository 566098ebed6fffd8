//! The workers of this process, by their own count.

use super::area::area;
use super::definition::MCP_SECONDS;
use super::known::Pool;
use super::pools::{CountedOutcome, ShedReason};

area! {
    /// The workers of this process.
    WorkerMetrics {
        /// How many calls run, by pool.
        pub observe_running: UpDownCounter(u64) [pool: Pool]
            = "shoal.worker.running", "{call}",
            "Calls that run in this process.";
        /// A call that ran is over.
        pub ran: Histogram(MCP_SECONDS) [pool: Pool, outcome: CountedOutcome]
            = "shoal.worker.call.duration", "s",
            "Calls at this process's backends, without their wait.";
        /// A call was not admitted.
        pub refused: Counter [pool: Pool, reason: ShedReason]
            = "shoal.worker.refused", "{call}", "Calls that this process's workers refused.";
        /// How often the backend was restarted since the worker began, by pool.
        pub observe_restarts: Observed(u64) [pool: Pool]
            = "shoal.worker.backend.restarts", "{restart}",
            "Restarts of the server behind a pool.";
        /// A service answered something else than its OpenAPI document says.
        pub unfit_answer: Counter []
            = "shoal.worker.openapi.unfit_answers", "{answer}",
            "OpenAPI answers that break the tool's `outputSchema`.";
    }
}
