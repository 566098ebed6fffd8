//! The bus of a cluster of one process.

use async_trait::async_trait;

use super::MemoryStore;
use crate::{ClusterBus, ClusterEvent, ClusterSubscription, StoreError};

/// Events that a subscriber may lag behind.
pub(super) const BACKLOG: usize = 1024;

#[async_trait]
impl ClusterBus for MemoryStore {
    async fn publish(&self, event: ClusterEvent) -> Result<(), StoreError> {
        // An error means that there are no subscribers.
        let _ = self.subscribers.send(Ok(event));
        Ok(())
    }

    fn subscribe(&self) -> ClusterSubscription {
        ClusterSubscription::new(self.subscribers.subscribe())
    }
}
