use super::area::area;
use super::labels::{KIND, labels};

area! {
    /// The metrics of actors.
    ActorMetrics {
        /// Observes running actors.
        pub observe_alive: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.alive", "{actor}", "Actors that run in this process.";
        /// Observes waiting messages.
        pub observe_mailbox: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.mailbox", "{message}", "Messages that wait in the mailboxes of actors.";
        /// Counts a failed actor.
        pub failed: Counter [kind: ActorKind]
            = "shoal.actor.failures", "{actor}", "Actors that failed.";
    }
}

labels! {
    /// The kind of an actor.
    ActorKind: KIND {
        /// The actor of a session.
        Session = "session",
        /// The actor of a pool at a worker.
        Pool = "pool",
    }
}
