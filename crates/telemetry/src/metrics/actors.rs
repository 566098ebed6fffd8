//! Actors and their mailboxes.

use super::area::area;
use super::labels::{KIND, labels};

area! {
    /// The metrics of actors.
    ActorMetrics {
        /// Observes how many actors run, by kind.
        pub observe_alive: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.alive", "{actor}", "Running actors.";
        /// Observes how many messages wait in mailboxes, by kind of actor.
        pub observe_mailbox: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.mailbox", "{message}", "Messages that wait in mailboxes.";
        /// Counts an actor that failed.
        pub failed: Counter [kind: ActorKind]
            = "shoal.actor.failures", "{actor}", "Failed actors.";
    }
}

labels! {
    /// The kind of an actor.
    ActorKind: KIND {
        /// A session.
        Session = "session",
        /// A pool's queue of calls.
        Pool = "pool",
    }
}
