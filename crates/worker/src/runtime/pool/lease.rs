//! An actor that stands still while a call which it does not run has its slot.

use std::sync::Arc;

use ractor::ActorRef;
use shoal_ports::Principal;

use super::Shared;
use super::actor::Job;

/// The lease of an actor. Dropping it gives the actor something else to do.
pub(in crate::runtime) struct ActorLease(Option<Leased>);

struct Leased {
    pool: Arc<Shared>,
    actor: ActorRef<Job>,
    /// Whose share it is.
    principal: Principal,
}

impl ActorLease {
    pub(super) fn new(pool: &Arc<Shared>, actor: &ActorRef<Job>, principal: &Principal) -> Self {
        Self(Some(Leased {
            pool: Arc::clone(pool),
            actor: actor.clone(),
            principal: principal.clone(),
        }))
    }

    /// Leaves the actor to whoever lent it.
    pub(super) fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for ActorLease {
    fn drop(&mut self) {
        let Some(lent) = self.0.take() else {
            return;
        };
        if let Some(work) = lent.pool.next(&lent.actor, &lent.principal) {
            // An actor that was killed hands the job back, and dropping it ends the call.
            drop(lent.actor.cast(Job::Waits(work)));
        }
    }
}
