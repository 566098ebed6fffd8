//! Streams of events, and the log that lets a client resume them.

use std::time::Duration;

use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{KIND, OUTCOME, labels};

area! {
    /// The metrics of streams and the event log.
    StreamMetrics {
        /// Observes how many streams clients listen to, by kind.
        pub observe_open: UpDownCounter(u64) [kind: StreamKind]
            = "shoal.stream.open", "{stream}", "Open client streams.";
        /// Counts a resumed stream.
        pub resumed: Counter [outcome: ResumeOutcome]
            = "shoal.stream.resumes", "{resume}", "Clients that resumed with a `Last-Event-ID`.";
        /// Observes the size of the log in bytes.
        pub observe_log_bytes: UpDownCounter(u64) []
            = "shoal.event_log.size", "By",
            "Bytes of logged events of this node's active sessions.";
        events: Sum []
            = "shoal.event_log.appended", "{event}", "Events written to the event log.";
        /// Counts bytes of written events.
        pub appended_bytes: Sum []
            = "shoal.event_log.appended.size", "By", "Bytes of these events.";
        /// Counts a connection that was cut because its client does not read.
        pub cut: Counter []
            = "shoal.stream.cut", "{stream}",
            "Connections cut for not reading; clients can resume.";
        /// Counts messages that went to a listener without the log.
        pub passed: Sum []
            = "shoal.stream.passed", "{message}",
            "Messages that bypassed the event log, such as list changes.";
        append: Histogram(SHORT_SECONDS) [outcome: AppendOutcome]
            = "shoal.event_log.append.duration", "s",
            "Writes to the event log.";
    }
}

labels! {
    /// The content of a stream.
    StreamKind: KIND {
        /// The messages of one call.
        Call = "call",
        /// The messages of a session, read by GET.
        Session = "session",
        /// A modern subscription.
        Subscription = "subscription",
        /// Both directions of a WebSocket.
        WebSocket = "websocket",
    }
}

labels! {
    /// How an attempt to resume a stream ended.
    ResumeOutcome: OUTCOME {
        /// The client had missed no events.
        Continued = "continued",
        /// The client got the missed events from the log.
        Replayed = "replayed",
        /// The log has lost the missed events.
        HistoryGone = "history_gone",
        /// The stream had ended, and the client had read its end.
        Ended = "ended",
        /// The log could not be read.
        Failed = "failed",
    }
}

labels! {
    /// How an attempt to write to the event log ended.
    AppendOutcome: OUTCOME {
        /// The events are in the log.
        Written = "written",
        /// Another node owns the session.
        Stale = "stale",
        /// A limit is reached.
        Full = "full",
        /// The store could not be reached, or did not answer in time.
        Unavailable = "unavailable",
        /// Another failure.
        Failed = "failed",
    }
}

impl StreamMetrics {
    /// Records how long a write to the event log took. `events` count only if they were written.
    pub fn appended(&self, duration: Duration, events: u64, outcome: AppendOutcome) {
        self.append(duration, outcome);
        if outcome == AppendOutcome::Written {
            self.events(events);
        }
    }
}
