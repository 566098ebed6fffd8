use std::time::Duration;

use shoal_ports::{GatewayError, NodeId, Placement, SessionRef, StoreError};

use super::Routes;

impl Routes {
    /// Concurrent lookups are limited, because many requests ask at once when a node dies.
    ///
    /// # Errors
    /// `NotFound`, also for another principal's session; `Unavailable` if the store is away.
    pub(super) async fn look_up(&self, to: &SessionRef) -> Result<Option<NodeId>, GatewayError> {
        let limit = self.config.lookup_within;
        let found = tokio::time::timeout(limit, self.ask(to)).await;
        match found.unwrap_or_else(|_| Err(late(limit))) {
            Ok(Some(placement)) if placement.principal == to.principal => Ok(placement.owner),
            Ok(_) | Err(StoreError::NotFound) => Err(GatewayError::NotFound),
            Err(error) => {
                Err(self.unavailable(format!("the session's owner cannot be looked up: {error}")))
            }
        }
    }

    async fn ask(&self, to: &SessionRef) -> Result<Option<Placement>, StoreError> {
        // This cannot fail, because the semaphore stays open.
        let _permit = self.lookups.acquire().await;
        self.directory.lookup(&to.session).await
    }

    pub(super) fn unavailable(&self, reason: String) -> GatewayError {
        GatewayError::Unavailable {
            reason,
            retry_after: self.config.calls.retry_after.get(),
        }
    }
}

fn late(limit: Duration) -> StoreError {
    StoreError::Unavailable(format!("no answer in {limit:?}"))
}
