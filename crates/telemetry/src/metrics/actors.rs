use super::area::area;
use super::labels::{KIND, labels};

area! {
    /// The metrics of actors.
    ActorMetrics {
        /// Observes running actors.
        pub observe_alive: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.alive", "{actor}", "Running actors.";
        /// Observes waiting messages.
        pub observe_mailbox: UpDownCounter(u64) [kind: ActorKind]
            = "shoal.actor.mailbox", "{message}", "Messages in the actors' mailboxes.";
        /// Counts a failed actor.
        pub failed: Counter [kind: ActorKind]
            = "shoal.actor.failures", "{actor}", "Failed actors.";
    }
}

labels! {
    /// The kind of an actor.
    ActorKind: KIND {
        /// Session.
        Session = "session",
        /// Runs calls at a worker.
        Pool = "pool",
    }
}
