//! The seam that carries news to every node.

use async_trait::async_trait;
use shoal_protocol::RawJson;
use tokio::sync::broadcast;

use crate::StoreError;

/// News for all nodes. Delivery is best effort and in order per publisher: a subscriber that falls
/// behind is told ([`BusSubscription::next`] returns `Lagged`) and looks for itself. Nothing durable
/// depends on the bus.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Publishes to every subscriber, this process included.
    async fn publish(&self, event: BusEvent) -> Result<(), StoreError>;

    /// Subscribes to everything published from now on. One subscription a node is enough.
    fn subscribe(&self) -> BusSubscription;
}

/// A piece of news.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum BusEvent {
    /// A resource changed.
    ResourceUpdated {
        /// Its URI.
        uri: String,
        /// The parameters of `notifications/resources/updated`, untouched.
        params: RawJson,
    },
}

/// A subscriber's end.
pub struct BusSubscription {
    receiver: broadcast::Receiver<BusEvent>,
}

/// News was missed: assume that everything changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;

impl BusSubscription {
    /// Wraps the channel that an engine feeds.
    pub fn new(receiver: broadcast::Receiver<BusEvent>) -> Self {
        Self { receiver }
    }

    /// The next piece of news; `None` when the bus has closed. Cancellation safe.
    pub async fn next(&mut self) -> Option<Result<BusEvent, Lagged>> {
        match self.receiver.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Err(Lagged)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
