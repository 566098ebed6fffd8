//! One of the pool's actors: runs one call at a time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::Shared;
use super::work::Parcel;
use crate::backend::Backend;

/// One of the pool's actors.
pub(super) struct PoolActor {
    pub(super) shared: Arc<Shared>,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) grace: Duration,
}

impl Actor for PoolActor {
    type Msg = Parcel;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<Parcel>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    // Never an error: the actor would end, and the pool be smaller by one.
    async fn handle(
        &self,
        myself: ActorRef<Parcel>,
        work: Parcel,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let mut next = Some(work);
        while let Some(work) = next {
            let ran = work.run(&self.shared.name, &*self.backend, self.grace);
            // A tool that panics has been caught before; this is the runtime's own.
            if AssertUnwindSafe(ran).catch_unwind().await.is_err() {
                tracing::error!(pool = %self.shared.name, "a call was lost to a defect of the worker");
            }
            drop(work);
            next = self.shared.next(&myself);
        }
        Ok(())
    }
}
