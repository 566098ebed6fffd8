//! Running calls that survive their session's owner.

use std::time::Duration;

use super::definition::{Attribute, Kind, SHORT_SECONDS, definitions};
use super::instrument::{Counter, Factory, Histogram};
use super::labels::{OUTCOME, label, labels};
use super::observed::{Observed, Registration, float};

definitions! {
    RUNNING = Kind::UpDownCounter, "shoal.journal.running", "{call}",
        "Calls that are written down as running, of the sessions that this node holds.", [];
    BEGIN = Kind::Histogram(SHORT_SECONDS), "shoal.journal.begin.duration", "s",
        "Writing a call down before it is dispatched.",
        [Attribute::one_of(OUTCOME, BeginOutcome::VALUES)];
    ATTACHES = Kind::Counter, "shoal.journal.attaches", "{attach}",
        "Attempts to find a running call at its worker again.",
        [Attribute::one_of(OUTCOME, AttachOutcome::VALUES)];
}

labels! {
    /// How writing a call down ended.
    BeginOutcome {
        /// The call may be dispatched.
        Begun = "begun",
        /// A former delivery wrote it down already.
        Repeated = "repeated",
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

labels! {
    /// How finding a running call again ended.
    AttachOutcome {
        /// Its events go on.
        Attached = "attached",
        /// Its worker is gone.
        WorkerGone = "worker_gone",
        /// The worker is there and knows nothing of the call.
        Unknown = "unknown",
        /// The worker no longer has all its events.
        HistoryGone = "history_gone",
        /// The call was safe to repeat and began again.
        Repeated = "repeated",
        /// Nobody knows what became of the call, which is what its client is told.
        Lost = "lost",
        /// Anything else.
        Failed = "failed",
    }
}

/// Running calls.
#[derive(Debug)]
pub struct JournalMetrics {
    running: Observed,
    begin: Histogram,
    attaches: Counter,
}

impl JournalMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            running: factory.observed(&RUNNING),
            begin: factory.histogram(&BEGIN),
            attaches: factory.counter(&ATTACHES),
        }
    }

    /// How many calls are written down as running.
    pub fn observe_running(&self, read: impl Fn() -> u64 + Send + Sync + 'static) -> Registration {
        self.running.number(move || float(read()))
    }

    /// Writing a call down is over.
    pub fn begun(&self, duration: Duration, outcome: BeginOutcome) {
        (self.begin).record(duration, || [label(OUTCOME, outcome.as_str())]);
    }

    /// Finding a running call again is over.
    pub fn attached(&self, outcome: AttachOutcome) {
        (self.attaches).add(1, || [label(OUTCOME, outcome.as_str())]);
    }
}
