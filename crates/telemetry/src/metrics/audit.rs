use super::area::area;
use super::labels::labels;

const SINK: &str = "shoal.audit.sink";

area! {
    /// The metrics of the audit trail.
    AuditMetrics {
        pub(crate) recorded: Counter [sink: AuditSink]
            = "shoal.audit.events", "{event}", "Audit events that Shoal recorded.";
        pub(crate) lost: Sum [sink: AuditSink]
            = "shoal.audit.lost", "{event}",
            "Audit events that the file lost. For the collector, see `shoal.telemetry.dropped`.";
    }
}

labels! {
    /// A destination of events.
    AuditSink: SINK {
        /// The file `audit.file`.
        File = "file",
        /// The OTLP collector.
        Otlp = "otlp",
    }
}
