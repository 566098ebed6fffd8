//! The bus within one process.

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::{Bus, BusEvent, BusSubscription, StoreError};

/// News that a subscriber may fall behind by before it is told so.
const BACKLOG: usize = 1024;

/// The bus within one process.
pub struct MemoryBus {
    sender: broadcast::Sender<BusEvent>,
}

impl Default for MemoryBus {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(BACKLOG),
        }
    }
}

#[async_trait]
impl Bus for MemoryBus {
    async fn publish(&self, event: BusEvent) -> Result<(), StoreError> {
        // An error only says that nobody listens.
        let _ = self.sender.send(event);
        Ok(())
    }

    fn subscribe(&self) -> BusSubscription {
        BusSubscription::new(self.sender.subscribe())
    }
}
