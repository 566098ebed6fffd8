//! Actors and their mailboxes.

use super::definition::{Attribute, Kind, definitions};
use super::instrument::{Counter, Factory};
use super::labels::{KIND, label, labels};
use super::observed::{Observed, Registration};

definitions! {
    ALIVE = Kind::UpDownCounter, "shoal.actor.alive", "{actor}",
        "Actors that run.",
        [Attribute::one_of(KIND, ActorKind::VALUES)];
    MAILBOX = Kind::UpDownCounter, "shoal.actor.mailbox", "{message}",
        "Messages that wait in the mailboxes of actors.",
        [Attribute::one_of(KIND, ActorKind::VALUES)];
    PANICS = Kind::Counter, "shoal.actor.failures", "{actor}",
        "Actors that ended in failure.",
        [Attribute::one_of(KIND, ActorKind::VALUES)];
}

labels! {
    /// What an actor is for.
    ActorKind {
        /// A session.
        Session = "session",
        /// A pool of calls at a worker.
        Pool = "pool",
    }
}

/// Actors.
#[derive(Debug)]
pub struct ActorMetrics {
    alive: Observed,
    mailbox: Observed,
    failures: Counter,
}

impl ActorMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            alive: factory.observed(&ALIVE),
            mailbox: factory.observed(&MAILBOX),
            failures: factory.counter(&PANICS),
        }
    }

    /// How many actors run, by kind.
    pub fn observe_alive(
        &self,
        read: impl Fn(&mut dyn FnMut(ActorKind, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.alive.by(KIND, read)
    }

    /// How many messages wait, by the kind of actor.
    pub fn observe_mailbox(
        &self,
        read: impl Fn(&mut dyn FnMut(ActorKind, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.mailbox.by(KIND, read)
    }

    /// An actor ended in failure.
    pub fn failed(&self, kind: ActorKind) {
        self.failures.add(1, || [label(KIND, kind.as_str())]);
    }
}
