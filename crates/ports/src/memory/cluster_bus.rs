use async_trait::async_trait;

use super::MemoryStore;
use crate::{ClusterBus, ClusterEvent, ClusterSubscription, StoreError};

pub(super) const BACKLOG: usize = 1024;

#[async_trait]
impl ClusterBus for MemoryStore {
    async fn publish(&self, event: ClusterEvent) -> Result<(), StoreError> {
        let _ = self.subscribers.send(Ok(event));
        Ok(())
    }

    fn subscribe(&self) -> ClusterSubscription {
        ClusterSubscription::new(self.subscribers.subscribe())
    }
}
