use std::time::Duration;

use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{KIND, OUTCOME, labels};

area! {
    /// The metrics of streams and the event log.
    StreamMetrics {
        /// Observes open streams.
        pub observe_open: UpDownCounter(u64) [kind: StreamKind]
            = "shoal.stream.open", "{stream}", "Streams to clients that are open.";
        /// Counts a resumed stream.
        pub resumed: Counter [outcome: ResumeOutcome]
            = "shoal.stream.resumes", "{resume}", "Clients that resumed with a `Last-Event-ID`.";
        /// Observes the bytes of this node's events in the event log.
        pub observe_log_bytes: UpDownCounter(u64) []
            = "shoal.event_log.size", "By",
            "Bytes of the events that this node's active sessions have in the event log.";
        events: Sum []
            = "shoal.event_log.appended", "{event}", "Events that Shoal wrote to the event log.";
        /// Counts bytes of written events.
        pub appended_bytes: Sum []
            = "shoal.event_log.appended.size", "By", "Bytes of the events that Shoal wrote to the event log.";
        /// Counts a connection cut because its client does not read.
        pub cut: Counter []
            = "shoal.stream.cut", "{stream}",
            "Connections that Shoal cut because the client did not read. Clients can resume.";
        /// Counts messages that were sent without the event log.
        pub passed: Sum []
            = "shoal.stream.passed", "{message}",
            "Messages that Shoal sent without the event log, such as list changes.";
        append: Histogram(SHORT_SECONDS) [outcome: AppendOutcome]
            = "shoal.event_log.append.duration", "s", "Time of writes to the event log.";
    }
}

labels! {
    /// The content of a stream.
    StreamKind: KIND {
        /// The stream carries the messages of one call.
        Call = "call",
        /// The stream carries the messages of a session, read by GET.
        Session = "session",
        /// The stream is a modern `subscriptions/listen`.
        Subscription = "subscription",
        /// The stream is a WebSocket, in both directions.
        WebSocket = "websocket",
    }
}

labels! {
    /// How an attempt to resume a stream ended.
    ResumeOutcome: OUTCOME {
        /// The client had missed no events.
        Continued = "continued",
        /// The client got its missed events from the event log.
        Replayed = "replayed",
        /// The event log has lost the missed events.
        HistoryGone = "history_gone",
        /// The stream is over, and the client has read its end.
        Ended = "ended",
        /// Shoal could not read the event log.
        Failed = "failed",
    }
}

labels! {
    /// How an attempt to write to the event log ended.
    AppendOutcome: OUTCOME {
        /// The events are in the event log.
        Written = "written",
        /// Another node owns the session.
        Stale = "stale",
        /// The events exceed a limit of the event log.
        Full = "full",
        /// Shoal could not reach the store, or the store did not answer in time.
        Unavailable = "unavailable",
        /// The write failed for another reason.
        Failed = "failed",
    }
}

impl StreamMetrics {
    /// Records a write to the event log. `events` count only if they were written.
    pub fn appended(&self, duration: Duration, events: u64, outcome: AppendOutcome) {
        self.append(duration, outcome);
        if outcome == AppendOutcome::Written {
            self.events(events);
        }
    }
}
