//! Actors and their mailboxes.

use super::area::area;
use super::labels::{KIND, labels};

area! {
    /// Actors.
    ActorMetrics {
        /// How many actors run, by kind.
        pub observe_alive: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.alive", "{actor}", "Running actors.";
        /// How many messages wait, by the kind of actor.
        pub observe_mailbox: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.mailbox", "{message}", "Messages that wait in mailboxes.";
        /// An actor ended in failure.
        pub failed: Counter [kind: ActorKind]
            = "shoal.actor.failures", "{actor}", "Failed actors.";
    }
}

labels! {
    /// The kind of an actor.
    ActorKind: KIND {
        /// A session.
        Session = "session",
        /// A pool of calls at a worker.
        Pool = "pool",
    }
}
