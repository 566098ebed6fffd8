use std::sync::Arc;

use ractor::ActorRef;
use shoal_ports::Principal;

use super::PoolInner;
use super::actor::Job;

/// Dropping the lease frees the actor for its next job.
pub(in crate::runtime) struct ActorLease(Option<Leased>);

struct Leased {
    pool: Arc<PoolInner>,
    actor: ActorRef<Job>,
    principal: Principal,
}

impl ActorLease {
    pub(super) fn new(pool: &Arc<PoolInner>, actor: &ActorRef<Job>, principal: &Principal) -> Self {
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
            // A killed actor returns the job; dropping it ends its call.
            drop(lent.actor.cast(Job::Waits(work)));
        }
    }
}
