use super::area::area;
use super::labels::{OUTCOME, REASON, labels};

const SIGNAL: &str = "shoal.telemetry.signal";

area! {
    /// The metrics of telemetry itself.
    OwnMetrics {
        pub(crate) dropped: Sum [signal: Signal, reason: DropReason]
            = "shoal.telemetry.dropped", "{item}",
            "Spans, log lines and data points that were lost or that the collector rejected.";
        pub(crate) exported: Counter [signal: Signal, outcome: ExportOutcome]
            = "shoal.telemetry.exports", "{export}", "Exports that this process sent to the collector.";
        pub(crate) suppressed: Counter []
            = "shoal.log.suppressed", "{line}", "Repeated log lines that Shoal left out.";
        pub(crate) line_dropped: Counter []
            = "shoal.log.dropped", "{line}",
            "Log lines that were lost because the reader of standard error stopped reading.";
    }
}

labels! {
    /// An exported signal.
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
    /// Why data did not reach the collector.
    DropReason: REASON {
        /// The queue of exports was full.
        QueueFull = "queue_full",
        /// The export failed.
        ExportFailed = "export_failed",
        /// The collector rejected a part of the export.
        Rejected = "rejected",
    }
}

labels! {
    /// How an export ended.
    ExportOutcome: OUTCOME {
        /// The collector accepted the export.
        Accepted = "accepted",
        /// The collector refused the export, or was unreachable.
        Failed = "failed",
        /// The collector did not answer in time.
        Timeout = "timeout",
    }
}
