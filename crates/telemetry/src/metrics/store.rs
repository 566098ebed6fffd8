//! Redis, seen from this process.

use std::time::Duration;

use super::definition::{Attribute, Kind, SHORT_SECONDS, definitions};
use super::instrument::{Counter, Factory, Histogram};
use super::labels::{OPERATION, OUTCOME, label, labels};
use super::observed::{Observed, Registration, float};

definitions! {
    OPERATIONS = Kind::Histogram(SHORT_SECONDS), "shoal.store.operation.duration", "s",
        "Operations of the storage ports, with every attempt.",
        [
            Attribute::code(OPERATION, "the operations of the storage ports, such as `journal.begin`"),
            Attribute::one_of(OUTCOME, StoreOutcome::VALUES),
        ];
    CONNECTED = Kind::Gauge, "shoal.store.connected", "{connection}",
        "1 while the store answers, 0 while it does not.", [];
    IN_FLIGHT = Kind::UpDownCounter, "shoal.store.in_flight", "{command}",
        "Commands that wait for the store's reply.", [];
    RECONNECTS = Kind::Counter, "shoal.store.reconnects", "{connection}",
        "Connections to the store that were opened again.", [];
    RETRIES = Kind::Counter, "shoal.store.retries", "{attempt}",
        "Attempts that were made once more.",
        [Attribute::code(OPERATION, "the operations of the storage ports")];
}

labels! {
    /// How an operation of a storage port ended.
    StoreOutcome {
        /// It took effect.
        Done = "done",
        /// Another node owns what it would have written.
        Stale = "stale",
        /// The store has lost what it was about.
        Forgotten = "forgotten",
        /// There is no such thing.
        NotFound = "not_found",
        /// Somebody else holds it.
        Held = "held",
        /// A limit is reached.
        Full = "full",
        /// The store could not be reached.
        Unavailable = "unavailable",
        /// The store did not answer in time.
        Timeout = "timeout",
        /// Anything else.
        Failed = "failed",
    }
}

/// Redis.
#[derive(Debug)]
pub struct StoreMetrics {
    operations: Histogram,
    connected: Observed,
    in_flight: Observed,
    reconnects: Counter,
    retries: Counter,
}

impl StoreMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            operations: factory.histogram(&OPERATIONS),
            connected: factory.observed(&CONNECTED),
            in_flight: factory.observed(&IN_FLIGHT),
            reconnects: factory.counter(&RECONNECTS),
            retries: factory.counter(&RETRIES),
        }
    }

    /// An operation is over; `operation` is port and method, such as `journal.begin`.
    pub fn operated(&self, operation: &'static str, duration: Duration, outcome: StoreOutcome) {
        self.operations.record(duration, || {
            [
                label(OPERATION, operation),
                label(OUTCOME, outcome.as_str()),
            ]
        });
    }

    /// Whether the store answers.
    pub fn observe_connected(
        &self,
        read: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Registration {
        self.connected.number(move || f64::from(u8::from(read())))
    }

    /// How many commands wait for their reply.
    pub fn observe_in_flight(
        &self,
        read: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Registration {
        self.in_flight.number(move || float(read()))
    }

    /// A connection was opened again.
    pub fn reconnected(&self) {
        self.reconnects.add(1, || []);
    }

    /// An attempt is made once more.
    pub fn retried(&self, operation: &'static str) {
        self.retries.add(1, || [label(OPERATION, operation)]);
    }
}
