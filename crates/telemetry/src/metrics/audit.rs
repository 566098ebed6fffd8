//! The audit trail.

use super::area::area;
use super::labels::labels;

const SINK: &str = "shoal.audit.sink";

area! {
    /// The audit trail.
    AuditMetrics {
        /// An event is on its way.
        pub(crate) recorded: Counter [sink: AuditSink]
            = "shoal.audit.events", "{event}", "Events of the audit trail that were recorded.";
        /// Counts events that were lost.
        pub(crate) lost: Sum [sink: AuditSink]
            = "shoal.audit.lost", "{event}",
            "Events of the audit trail that the file did not take. Those that the collector does not take are counted in \
             `shoal.telemetry.dropped`.";
    }
}

labels! {
    /// A destination of events.
    AuditSink: SINK {
        /// The file.
        File = "file",
        /// The collector.
        Otlp = "otlp",
    }
}
