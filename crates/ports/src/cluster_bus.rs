//! The seam that carries events to every node.

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::{NodeId, SessionId, StoreError};

/// Carries events to all nodes. Delivery is best effort: subscribers must poll for anything that they depend on.
///
/// For resource updates see [`Dispatcher::resource_updates`](crate::Dispatcher::resource_updates).
#[async_trait]
pub trait ClusterBus: Send + Sync + 'static {
    /// Publishes to every subscriber on every node, this one included. Subscribers see one publisher's events in order.
    /// If the future is dropped, the event may or may not be published.
    ///
    /// # Errors
    /// If the store does not confirm the event, which may have been published all the same.
    async fn publish(&self, event: ClusterEvent) -> Result<(), StoreError>;

    /// Subscribes to future events.
    fn subscribe(&self) -> ClusterSubscription;
}

/// An event for all nodes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ClusterEvent {
    /// A node is leaving or has left. Its sessions can be claimed as it releases them.
    NodeLeft {
        /// The node.
        node: NodeId,
    },
    /// A task's status has changed.
    TaskChanged {
        /// The task.
        task: SessionId,
    },
}

/// The receiving end of a subscription.
pub struct ClusterSubscription {
    events: broadcast::Receiver<Result<ClusterEvent, Lagged>>,
}

/// Events were missed: assume that everything changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;

impl ClusterSubscription {
    /// Wraps the channel of an engine, which also reports there the events that it missed itself.
    pub fn new(events: broadcast::Receiver<Result<ClusterEvent, Lagged>>) -> Self {
        Self { events }
    }

    /// Returns the next event; `None` when the bus has closed. Cancellation safe.
    ///
    /// # Errors
    /// [`Lagged`] once for each gap, because the subscriber fell behind or the engine was disconnected. Later events
    /// follow.
    pub async fn next(&mut self) -> Option<Result<ClusterEvent, Lagged>> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Err(Lagged)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
