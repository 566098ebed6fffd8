//! Reserves an actor for a call that runs in another task.

use std::sync::Arc;

use ractor::ActorRef;
use shoal_ports::Principal;

use super::Shared;
use super::actor::Job;

/// The lease of an actor. Dropping it frees the actor for its next job.
pub(in crate::runtime) struct ActorLease(Option<Leased>);

struct Leased {
    pool: Arc<Shared>,
    actor: ActorRef<Job>,
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
            // A killed actor returns the job. Dropping the job ends its call.
            drop(lent.actor.cast(Job::Waits(work)));
        }
    }
}
