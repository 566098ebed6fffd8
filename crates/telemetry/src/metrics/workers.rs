use super::area::area;
use super::definition::MCP_SECONDS;
use super::known::Pool;
use super::pools::{CountedOutcome, ShedReason};

area! {
    /// The metrics of this process's workers.
    WorkerMetrics {
        /// Observes running calls.
        pub observe_running: UpDownCounter(u64) [pool: Pool]
            = "shoal.worker.running", "{call}", "Running calls of this process's workers.";
        /// Records a call's duration.
        pub ran: Histogram(MCP_SECONDS) [pool: Pool, outcome: CountedOutcome]
            = "shoal.worker.call.duration", "s",
            "Time of calls at this process's backends, without queues.";
        /// Counts a refused call.
        pub refused: Counter [pool: Pool, reason: ShedReason]
            = "shoal.worker.refused", "{call}", "Calls refused by this process's workers.";
        /// Observes the backend's restarts.
        pub observe_restarts: Observed(u64) [pool: Pool]
            = "shoal.worker.backend.restarts", "{restart}",
            "Restarts of the pool's server.";
        /// Counts an answer that deviates from its OpenAPI document.
        pub unfit_answer: Counter []
            = "shoal.worker.openapi.unfit_answers", "{answer}",
            "OpenAPI answers that do not match the tool's `outputSchema`.";
    }
}
