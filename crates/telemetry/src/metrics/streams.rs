//! Streams of events, and the log that lets a client resume them.

use std::time::Duration;

use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{KIND, OUTCOME, labels};

area! {
    /// Streams and the event log.
    StreamMetrics {
        /// How many streams of each kind clients listen to.
        pub observe_open: UpDownCounter(u64) [kind: StreamKind]
            = "shoal.stream.open", "{stream}", "Streams that clients listen to.";
        /// A client came back.
        pub resumed: Counter [outcome: ResumeOutcome]
            = "shoal.stream.resumes", "{resume}", "Clients that came back with a last event id.";
        /// How many bytes are in the log.
        pub observe_log_bytes: UpDownCounter(u64) []
            = "shoal.event_log.size", "By",
            "Bytes of events that the log kept, when last written to, for the active sessions of this node.";
        events: Sum []
            = "shoal.event_log.appended", "{event}", "Events that were written to the event log.";
        /// Events of so many bytes were written.
        pub appended_bytes: Sum []
            = "shoal.event_log.appended.size", "By", "Bytes of the events that were written to the event log.";
        /// A connection that does not read was cut.
        pub cut: Counter []
            = "shoal.stream.cut", "{stream}",
            "Connections that were cut because they did not read their stream; they can resume it.";
        /// Messages were handed to a listener without being logged.
        pub passed: Sum []
            = "shoal.stream.passed", "{message}",
            "Messages that went to listeners without the event log, such as notices of changed lists.";
        append: Histogram(SHORT_SECONDS) [outcome: AppendOutcome]
            = "shoal.event_log.append.duration", "s",
            "Writing events to the event log, before any reader gets them.";
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
        /// Both ways of a WebSocket.
        WebSocket = "websocket",
    }
}

labels! {
    /// How a resume ended.
    ResumeOutcome: OUTCOME {
        /// Without missed events.
        Continued = "continued",
        /// Missed events came from the log.
        Replayed = "replayed",
        /// The log has lost the missed events.
        HistoryGone = "history_gone",
        /// The stream is over, and its end was read.
        Ended = "ended",
        /// The log could not be read.
        Failed = "failed",
    }
}

labels! {
    /// How an append ended.
    AppendOutcome: OUTCOME {
        /// The events are in the log.
        Written = "written",
        /// Another node owns the session.
        Stale = "stale",
        /// A limit is reached.
        Full = "full",
        /// The store could not be reached, or did not answer in time.
        Unavailable = "unavailable",
        /// Anything else.
        Failed = "failed",
    }
}

impl StreamMetrics {
    /// Records the end of an append. `events` count only if they were written.
    pub fn appended(&self, duration: Duration, events: u64, outcome: AppendOutcome) {
        self.append(duration, outcome);
        if outcome == AppendOutcome::Written {
            self.events(events);
        }
    }
}
