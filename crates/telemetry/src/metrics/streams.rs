use std::time::Duration;

use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{KIND, OUTCOME, labels};

area! {
    /// The metrics of streams and the event log.
    StreamMetrics {
        /// Observes open streams.
        pub observe_open: UpDownCounter(u64) [kind: StreamKind]
            = "shoal.stream.open", "{stream}", "Open streams to clients.";
        /// Counts a resumed stream.
        pub resumed: Counter [outcome: ResumeOutcome]
            = "shoal.stream.resumes", "{resume}", "Clients that resumed with a `Last-Event-ID`.";
        /// Observes the bytes of this node's events in the event log.
        pub observe_log_bytes: UpDownCounter(u64) []
            = "shoal.event_log.size", "By",
            "Bytes that this node's active sessions have in the event log.";
        events: Sum []
            = "shoal.event_log.appended", "{event}", "Events written to the event log.";
        /// Counts bytes of written events.
        pub appended_bytes: Sum []
            = "shoal.event_log.appended.size", "By", "Bytes written to the event log.";
        /// Counts a connection cut because its client does not read.
        pub cut: Counter []
            = "shoal.stream.cut", "{stream}",
            "Connections cut because the client did not read.";
        /// Counts messages that were sent without the event log.
        pub passed: Sum []
            = "shoal.stream.passed", "{message}",
            "Messages sent without the event log, such as list changes.";
        append: Histogram(SHORT_SECONDS) [outcome: AppendOutcome]
            = "shoal.event_log.append.duration", "s", "Time of writes to the event log.";
    }
}

labels! {
    /// The content of a stream.
    StreamKind: KIND {
        /// Messages of one call.
        Call = "call",
        /// Messages of a session (GET).
        Session = "session",
        /// `subscriptions/listen`.
        Subscription = "subscription",
        /// WebSocket.
        WebSocket = "websocket",
    }
}

labels! {
    /// How an attempt to resume a stream ended.
    ResumeOutcome: OUTCOME {
        /// No events missed.
        Continued = "continued",
        /// Missed events came from the event log.
        Replayed = "replayed",
        /// Missed events are lost.
        HistoryGone = "history_gone",
        /// The client has already read the end.
        Ended = "ended",
        /// Event log unreadable.
        Failed = "failed",
    }
}

labels! {
    /// How an attempt to write to the event log ended.
    AppendOutcome: OUTCOME {
        /// Written.
        Written = "written",
        /// Another node owns the session.
        Stale = "stale",
        /// Limit of the event log reached.
        Full = "full",
        /// Store unreachable or too slow.
        Unavailable = "unavailable",
        /// Failed.
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
