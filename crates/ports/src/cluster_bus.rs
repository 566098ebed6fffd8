use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::{NodeId, StoreError};

/// Carries events to all nodes. Delivery is best effort, so subscribers must also poll.
///
/// For resource updates see [`Dispatcher::resource_updates`](crate::Dispatcher::resource_updates).
#[async_trait]
pub trait ClusterBus: Send + Sync + 'static {
    /// Publishes an event to all subscribers. Each gets one publisher's events in order.
    ///
    /// # Cancel safety
    /// If the future is dropped, the event may still be published.
    ///
    /// # Errors
    /// If the store does not confirm the event, which may still be published.
    async fn publish(&self, event: ClusterEvent) -> Result<(), StoreError>;

    /// Subscribes to future events.
    fn subscribe(&self) -> ClusterSubscription;
}

/// An event for all nodes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ClusterEvent {
    /// A node is leaving, or has left. Other nodes may claim its released sessions.
    NodeLeft {
        /// The leaving node.
        node: NodeId,
    },
}

/// A subscriber's receiving end.
pub struct ClusterSubscription {
    events: broadcast::Receiver<Result<ClusterEvent, Lagged>>,
}

/// The subscriber missed events, and must assume that everything changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;

impl ClusterSubscription {
    /// Wraps a storage engine's channel.
    pub fn new(events: broadcast::Receiver<Result<ClusterEvent, Lagged>>) -> Self {
        Self { events }
    }

    /// Returns the next event; `None` when the bus has closed. Cancellation safe.
    ///
    /// # Errors
    /// [`Lagged`] once for each gap. Later events follow it.
    pub async fn next(&mut self) -> Option<Result<ClusterEvent, Lagged>> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Err(Lagged)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
