use super::area::{Label, area};
use super::definition::{Attribute, SHORT_SECONDS};
use super::labels::{OPERATION, OUTCOME, Pair, label, labels};

area! {
    /// The metrics of the store.
    StoreMetrics {
        /// Records an operation's duration. `operation` is the port and method, for example `journal.begin`.
        pub operated: Histogram(SHORT_SECONDS) [operation: StoreOperation, outcome: StoreOutcome]
            = "shoal.store.operation.duration", "s", "Time of store operations, including all attempts.";
        /// Observes whether the store answers.
        pub observe_connected: Gauge(bool) []
            = "shoal.store.connected", "{connection}", "1 if the store answers, 0 if not.";
        /// Observes commands that wait for their reply.
        pub observe_in_flight: UpDownCounter(u64) []
            = "shoal.store.in_flight", "{command}", "Commands that wait for the store's reply.";
        /// Counts a reconnection.
        pub reconnected: Counter []
            = "shoal.store.reconnects", "{connection}", "Reconnections to the store.";
    }
}

labels! {
    /// How an operation of a storage port ended.
    StoreOutcome: OUTCOME {
        /// Done.
        Done = "done",
        /// Another node owns the data.
        Stale = "stale",
        /// Store lost the data.
        Forgotten = "forgotten",
        /// Not found.
        NotFound = "not_found",
        /// Another node holds the data.
        Held = "held",
        /// Limit of the store reached.
        Full = "full",
        /// Store unreachable.
        Unavailable = "unavailable",
        /// Timeout.
        Timeout = "timeout",
    }
}

/// An operation of a storage port.
pub enum StoreOperation {}

impl Label for StoreOperation {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute =
        Attribute::code(OPERATION, "store operations, such as `journal.begin`");

    fn pair(given: &'static str) -> Pair {
        label(OPERATION, given)
    }
}
