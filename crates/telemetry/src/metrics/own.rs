use super::area::area;
use super::labels::{OUTCOME, REASON, labels};

const SIGNAL: &str = "shoal.telemetry.signal";

area! {
    /// The metrics of telemetry itself.
    OwnMetrics {
        pub(crate) dropped: Sum [signal: Signal, reason: DropReason]
            = "shoal.telemetry.dropped", "{item}",
            "Spans, log lines and data points that were lost.";
        pub(crate) exported: Counter [signal: Signal, outcome: ExportOutcome]
            = "shoal.telemetry.exports", "{export}", "Exports to the collector.";
        pub(crate) suppressed: Counter []
            = "shoal.log.suppressed", "{line}", "Repeated log lines that Shoal left out.";
        pub(crate) line_dropped: Counter []
            = "shoal.log.dropped", "{line}",
            "Log lines lost because nothing read standard error.";
    }
}

labels! {
    /// An exported signal.
    Signal: SIGNAL {
        /// Spans.
        Traces = "traces",
        /// Metrics.
        Metrics = "metrics",
        /// Logs.
        Logs = "logs",
    }
}

labels! {
    /// Why data did not reach the collector.
    DropReason: REASON {
        /// Queue full.
        QueueFull = "queue_full",
        /// Export failed.
        ExportFailed = "export_failed",
        /// Collector rejected a part of the export.
        Rejected = "rejected",
    }
}

labels! {
    /// How an export ended.
    ExportOutcome: OUTCOME {
        /// Accepted.
        Accepted = "accepted",
        /// Refused, or collector unreachable.
        Failed = "failed",
        /// Timeout.
        Timeout = "timeout",
    }
}
