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
        /// So many will not arrive.
        pub(crate) lost: Sum [sink: AuditSink]
            = "shoal.audit.lost", "{event}",
            "Events of the audit trail that the file did not take. Those that the collector does not take are counted in \
             `shoal.telemetry.dropped`.";
    }
}

labels! {
    /// Where events go.
    AuditSink: SINK {
        /// The file.
        File = "file",
        /// The collector.
        Otlp = "otlp",
    }
}
