use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::PoolInner;
use super::work::{BoxedCall, CallTask};

pub(super) struct PoolActor {
    pub(super) shared: Arc<PoolInner>,
}

pub(super) enum Job {
    Waits(BoxedCall),
    Begun(CallTask),
}

impl Actor for PoolActor {
    type Msg = Job;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<Job>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    // An error would end the actor and shrink the pool.
    async fn handle(
        &self,
        myself: ActorRef<Job>,
        job: Job,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let mut next = Some(job);
        while let Some(job) = next {
            let running = match job {
                Job::Waits(work) => work.run(Arc::clone(&self.shared)),
                Job::Begun(running) => running,
            };
            let call = self.shared.run(running).await;
            let next_of = self.shared.next(&myself, &call.caller.principal);
            next = next_of.map(Job::Waits);
        }
        Ok(())
    }
}
