//! Streams of events, and the log that lets a client resume them.

use std::time::Duration;

use super::definition::{Attribute, Kind, SHORT_SECONDS, definitions};
use super::instrument::{Counter, Factory, Histogram};
use super::labels::{KIND, OUTCOME, label, labels};
use super::observed::{Observed, Registration};

definitions! {
    OPEN = Kind::UpDownCounter, "shoal.stream.open", "{stream}",
        "Streams that clients listen to.",
        [Attribute::one_of(KIND, StreamKind::VALUES)];
    RESUMES = Kind::Counter, "shoal.stream.resumes", "{resume}",
        "Clients that came back with a last event id.",
        [Attribute::one_of(OUTCOME, ResumeOutcome::VALUES)];
    APPENDED = Kind::Counter, "shoal.event_log.appended", "{event}",
        "Events that were written to the event log.", [];
    APPENDED_BYTES = Kind::Counter, "shoal.event_log.appended.size", "By",
        "Bytes of the events that were written to the event log.", [];
    CUT = Kind::Counter, "shoal.stream.cut", "{stream}",
        "Connections that were cut because they did not read their stream; they can resume it.", [];
    PASSED = Kind::Counter, "shoal.stream.passed", "{message}",
        "Messages that went past the event log to whoever listened at that moment, such as changed lists.", [];
    APPEND = Kind::Histogram(SHORT_SECONDS), "shoal.event_log.append.duration", "s",
        "Writing events to the event log, before any reader gets them.",
        [Attribute::one_of(OUTCOME, AppendOutcome::VALUES)];
}

labels! {
    /// What a stream carries.
    StreamKind {
        /// What belongs to one call.
        Call = "call",
        /// What belongs to a session, read by GET.
        Session = "session",
        /// A modern subscription.
        Subscription = "subscription",
    }
}

labels! {
    /// How a resume ended.
    ResumeOutcome {
        /// Nothing was missed: the stream goes on where it was.
        Continued = "continued",
        /// What was missed came from the log.
        Replayed = "replayed",
        /// The log no longer has what was missed.
        HistoryGone = "history_gone",
        /// The stream is over, and its end was read.
        Ended = "ended",
        /// No such stream, or an id that nobody gave out.
        Unknown = "unknown",
        /// The log could not be read.
        Failed = "failed",
    }
}

labels! {
    /// How an append ended.
    AppendOutcome {
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

/// Streams and the event log.
#[derive(Debug)]
pub struct StreamMetrics {
    open: Observed,
    resumes: Counter,
    appended: Counter,
    appended_bytes: Counter,
    cut: Counter,
    passed: Counter,
    append: Histogram,
}

impl StreamMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            open: factory.observed(&OPEN),
            resumes: factory.counter(&RESUMES),
            appended: factory.counter(&APPENDED),
            appended_bytes: factory.counter(&APPENDED_BYTES),
            cut: factory.counter(&CUT),
            passed: factory.counter(&PASSED),
            append: factory.histogram(&APPEND),
        }
    }

    /// How many streams of each kind clients listen to.
    pub fn observe_open(
        &self,
        read: impl Fn(&mut dyn FnMut(StreamKind, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.open.by(KIND, read)
    }

    /// A client came back.
    pub fn resumed(&self, outcome: ResumeOutcome) {
        (self.resumes).add(1, || [label(OUTCOME, outcome.as_str())]);
    }

    /// Events of so many bytes were written.
    pub fn appended_bytes(&self, bytes: u64) {
        self.appended_bytes.add(bytes, || []);
    }

    /// Messages were handed to a listener without being logged.
    pub fn passed(&self, messages: u64) {
        self.passed.add(messages, || []);
    }

    /// A connection that does not read was cut.
    pub fn cut(&self) {
        self.cut.add(1, || []);
    }

    /// An append of `events` is over; they are counted only when they were written.
    pub fn appended(&self, duration: Duration, events: u64, outcome: AppendOutcome) {
        (self.append).record(duration, || [label(OUTCOME, outcome.as_str())]);
        if outcome == AppendOutcome::Written {
            self.appended.add(events, || []);
        }
    }
}
