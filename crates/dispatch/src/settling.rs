use std::time::Duration;

use shoal_ports::{CallFailure, SettledFacts};
use tokio::time::{Instant, timeout, timeout_at};

use crate::dispatch::Dispatch;
use crate::picture::{NOT_WHOLE, not_ready};

const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum wait for a starting server. Clients and proxies time out after a minute.
pub(crate) const STARTS_WITHIN: Duration = Duration::from_secs(50);

impl Dispatch {
    /// Waits until the lists hold every pool that can be known, within
    /// [`settle_within`](crate::Config::settle_within). Cancel safe.
    pub async fn settled(&self) {
        let mut changes = self.shared.changes();
        while let Some(wait) = self.shared.view().unsettled() {
            let _ = timeout(wait, changes.changed()).await;
        }
    }

    /// Fails with `NotReady` if a pool is still missing at the request's limit.
    pub(crate) async fn settled_by(&self, deadline: Instant) -> Result<(), CallFailure> {
        let until = deadline.min(Instant::now() + PATIENCE);
        let settled = timeout_at(until, self.settled()).await;
        settled.map_err(|_| not_ready(NOT_WHOLE.to_owned()))
    }

    pub(crate) async fn facts_in_time(&self) -> Result<SettledFacts, CallFailure> {
        let lacks = self.anything_by(Instant::now() + STARTS_WITHIN).await?;
        let facts = self.shared.facts.borrow().clone();
        Ok(SettledFacts { facts, lacks })
    }

    /// Waits until the lists are settled and not empty. If pools are still missing then, returns the failure
    /// that unknown names get.
    ///
    /// # Errors
    /// `NotReady` if the lists do not settle, or stay empty.
    pub(crate) async fn anything_by(
        &self,
        deadline: Instant,
    ) -> Result<Option<CallFailure>, CallFailure> {
        let began = Instant::now();
        self.settled_by(deadline).await?;
        let mut changes = self.shared.changes();
        loop {
            let view = self.shared.view();
            let lacks = view.unannounced(self.shared.config.policies.is_some());
            let Some(why) = lacks.clone().filter(|_| view.catalog.is_empty()) else {
                return Ok(lacks);
            };
            let patience = match view.starts() {
                true => STARTS_WITHIN,
                false => PATIENCE,
            };
            let until = deadline.min(began + patience);
            let changed = timeout_at(until, changes.changed()).await;
            let _ = changed.map_err(|_| why)?;
        }
    }
}
