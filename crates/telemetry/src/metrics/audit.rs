use super::area::area;
use super::labels::labels;

const SINK: &str = "shoal.audit.sink";

area! {
    /// The metrics of the audit trail.
    AuditMetrics {
        pub(crate) recorded: Counter [sink: AuditSink]
            = "shoal.audit.events", "{event}", "Recorded audit events.";
        pub(crate) lost: Sum [sink: AuditSink]
            = "shoal.audit.lost", "{event}",
            "Audit events not written to the file. For the collector, see `shoal.telemetry.dropped`.";
    }
}

labels! {
    /// A destination of events.
    AuditSink: SINK {
        /// `audit.file`.
        File = "file",
        /// OTLP.
        Otlp = "otlp",
    }
}
