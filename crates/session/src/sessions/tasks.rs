mod adopting;
mod asking;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_ports::{GatewayError, SessionRef, SessionTasks, StoreError, TaskClient};

use super::{ATTEMPTS, Node};
use crate::live::LiveSession;
use crate::store_failure::store_failed;

pub(super) const NEVER_BEGUN: &str = "the task was never started";

impl Node {
    pub(crate) async fn tasks_of(
        self: &Arc<Self>,
        session: &SessionRef,
    ) -> Result<Option<SessionTasks>, GatewayError> {
        let (_, made) = self.read_live(session, LiveSession::made_tasks).await?;
        Ok(made)
    }

    /// `None` if the session exists. Fails as for other sessions, because a task counts as a
    /// session of its principal.
    pub(super) async fn open_task(
        self: &Arc<Self>,
        to: &SessionRef,
        client: &TaskClient,
    ) -> Result<Option<Arc<LiveSession>>, GatewayError> {
        if self.handing_over.load(Ordering::Acquire) {
            return Err(GatewayError::Moved { owner: None });
        }
        // Another attempt may open the same session now.
        let _alone = self.locks.lock(&to.session).await;
        if self.table.holds(&to.session) {
            return Ok(None);
        }
        self.stored.check(&to.principal)?;
        let place = self.places.take(&to.principal)?;
        match self.create_task(to, client, place).await {
            Ok(live) => Ok(Some(live)),
            Err(StoreError::Held) => Ok(None),
            Err(error) => Err(store_failed(&error, &self.config)),
        }
    }

    /// Rebuilds a panicked session first.
    async fn read_live<T>(
        self: &Arc<Self>,
        to: &SessionRef,
        read: impl Fn(&LiveSession) -> Option<T>,
    ) -> Result<(Arc<LiveSession>, T), GatewayError> {
        for _ in 0..ATTEMPTS {
            let live = self.find(to).await?;
            if let Some(read) = read(&live) {
                return Ok((live, read));
            }
            self.forget_dead(&live).await;
        }
        Err(self.being_moved())
    }
}
