//! Telemetry itself: what did not reach the collector.

use super::area::area;
use super::labels::{OUTCOME, REASON, labels};

const SIGNAL: &str = "shoal.telemetry.signal";

area! {
    /// Telemetry itself.
    OwnMetrics {
        /// So many did not reach the collector.
        pub(crate) dropped: Sum [signal: Signal, reason: DropReason]
            = "shoal.telemetry.dropped", "{item}",
            "Spans, log lines and data points that did not reach the collector, or that it rejected.";
        /// An export is over.
        pub(crate) exported: Counter [signal: Signal, outcome: ExportOutcome]
            = "shoal.telemetry.exports", "{export}", "Exports to the collector.";
        /// A line was left out.
        pub(crate) suppressed: Counter []
            = "shoal.log.suppressed", "{line}", "Log lines that repeated too often and were left out.";
        /// A line was dropped.
        pub(crate) line_dropped: Counter []
            = "shoal.log.dropped", "{line}",
            "Log lines that standard error did not take in time: whoever reads it has stopped.";
    }
}

labels! {
    /// What is exported.
    Signal: SIGNAL {
        /// Spans.
        Traces = "traces",
        /// Metrics.
        Metrics = "metrics",
        /// Log lines.
        Logs = "logs",
    }
}

labels! {
    /// Why something did not reach the collector.
    DropReason: REASON {
        /// Too many were waiting.
        QueueFull = "queue_full",
        /// The export failed.
        ExportFailed = "export_failed",
        /// The collector took the export and rejected a part of it.
        Rejected = "rejected",
    }
}

labels! {
    /// How an export ended.
    ExportOutcome: OUTCOME {
        /// The collector took it.
        Accepted = "accepted",
        /// The collector did not take it, or could not be reached.
        Failed = "failed",
        /// The collector did not answer in time.
        Timeout = "timeout",
    }
}
