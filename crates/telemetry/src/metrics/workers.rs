use super::area::area;
use super::definition::MCP_SECONDS;
use super::known::Pool;
use super::pools::{CountedOutcome, ShedReason};

area! {
    /// The metrics of this process's workers.
    WorkerMetrics {
        /// Observes running calls.
        pub observe_running: UpDownCounter(u64) [pool: Pool]
            = "shoal.worker.running", "{call}", "Calls that run at this process's workers.";
        /// Records a call's duration.
        pub ran: Histogram(MCP_SECONDS) [pool: Pool, outcome: CountedOutcome]
            = "shoal.worker.call.duration", "s",
            "Time of calls at this process's backends, without the time in the queue.";
        /// Counts a refused call.
        pub refused: Counter [pool: Pool, reason: ShedReason]
            = "shoal.worker.refused", "{call}", "Calls that this process's workers refused.";
        /// Observes the backend's restarts.
        pub observe_restarts: Observed(u64) [pool: Pool]
            = "shoal.worker.backend.restarts", "{restart}",
            "Restarts of the server behind a pool.";
        /// Counts an answer that deviates from its OpenAPI document.
        pub unfit_answer: Counter []
            = "shoal.worker.openapi.unfit_answers", "{answer}",
            "Answers of OpenAPI services that do not match the tool's `outputSchema`.";
    }
}
