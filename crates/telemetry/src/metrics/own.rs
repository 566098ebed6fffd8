//! Telemetry itself: what did not reach the collector.

use super::definition::{Attribute, Kind, definitions};
use super::instrument::{Counter, Factory};
use super::labels::{OUTCOME, REASON, label, labels};

const SIGNAL: &str = "shoal.telemetry.signal";

definitions! {
    DROPPED = Kind::Counter, "shoal.telemetry.dropped", "{item}",
        "Spans, log lines and data points that did not reach the collector, or that it rejected.",
        [
            Attribute::one_of(SIGNAL, Signal::VALUES),
            Attribute::one_of(REASON, DropReason::VALUES),
        ];
    EXPORTS = Kind::Counter, "shoal.telemetry.exports", "{export}",
        "Exports to the collector.",
        [
            Attribute::one_of(SIGNAL, Signal::VALUES),
            Attribute::one_of(OUTCOME, ExportOutcome::VALUES),
        ];
    SUPPRESSED = Kind::Counter, "shoal.log.suppressed", "{line}",
        "Log lines that repeated too often and were left out.", [];
    LINES_DROPPED = Kind::Counter, "shoal.log.dropped", "{line}",
        "Log lines that standard error did not take in time: whoever reads it has stopped.", [];
}

labels! {
    /// What is exported.
    Signal {
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
    DropReason {
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
    ExportOutcome {
        /// The collector took it.
        Accepted = "accepted",
        /// The collector did not take it, or could not be reached.
        Failed = "failed",
        /// The collector did not answer in time.
        Timeout = "timeout",
    }
}

/// Telemetry itself.
#[derive(Debug)]
pub struct OwnMetrics {
    dropped: Counter,
    exports: Counter,
    suppressed: Counter,
    lines_dropped: Counter,
}

impl OwnMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            dropped: factory.counter(&DROPPED),
            exports: factory.counter(&EXPORTS),
            suppressed: factory.counter(&SUPPRESSED),
            lines_dropped: factory.counter(&LINES_DROPPED),
        }
    }

    pub(crate) fn dropped(&self, signal: Signal, reason: DropReason, count: u64) {
        self.dropped.add(count, || {
            [
                label(SIGNAL, signal.as_str()),
                label(REASON, reason.as_str()),
            ]
        });
    }

    pub(crate) fn exported(&self, signal: Signal, outcome: ExportOutcome) {
        self.exports.add(1, || {
            [
                label(SIGNAL, signal.as_str()),
                label(OUTCOME, outcome.as_str()),
            ]
        });
    }

    pub(crate) fn suppressed(&self) {
        self.suppressed.add(1, || []);
    }

    pub(crate) fn line_dropped(&self) {
        self.lines_dropped.add(1, || []);
    }
}
