//! Actors and their mailboxes.

use super::area::area;
use super::labels::{KIND, labels};

area! {
    /// Actors.
    ActorMetrics {
        /// How many actors run, by kind.
        pub observe_alive: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.alive", "{actor}", "Actors that run.";
        /// How many messages wait, by the kind of actor.
        pub observe_mailbox: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.mailbox", "{message}", "Messages that wait in the mailboxes of actors.";
        /// An actor ended in failure.
        pub failed: Counter [kind: ActorKind]
            = "shoal.actor.failures", "{actor}", "Actors that ended in failure.";
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
