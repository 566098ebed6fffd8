use async_trait::async_trait;
use shoal_ports::{ClusterBus, ClusterEvent, ClusterSubscription, StoreError};

use crate::measure::measured;
use crate::reply::unexpected;
use crate::store::RedisStore;

#[async_trait]
impl ClusterBus for RedisStore {
    async fn publish(&self, event: ClusterEvent) -> Result<(), StoreError> {
        measured("bus.publish", async {
            let payload = serde_json::to_vec(&event).map_err(|_| unexpected())?;
            let channel = &self.inner.bus.channel;
            let mut command = redis::cmd("PUBLISH");
            command.arg(channel).arg(payload);
            // The channel is the key, so one node of a Redis Cluster gets all events of a publisher and keeps their
            // order.
            self.inner.connections.ask(channel, command).await?;
            Ok(())
        })
        .await
    }

    fn subscribe(&self) -> ClusterSubscription {
        ClusterSubscription::new(self.inner.bus.subscribers.subscribe())
    }
}
