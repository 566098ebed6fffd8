//! The seam that carries events to every node.

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::{NodeId, SessionId, StoreError};

/// Carries events to all nodes, best effort: subscribers must also poll.
///
/// For resource updates see [`Dispatcher::resource_updates`](crate::Dispatcher::resource_updates).
#[async_trait]
pub trait ClusterBus: Send + Sync + 'static {
    /// Publishes to all subscribers, in the publisher's order.
    ///
    /// # Cancel safety
    /// If the future is dropped, the event may be published.
    ///
    /// # Errors
    /// If the store does not confirm the event, which may be published.
    async fn publish(&self, event: ClusterEvent) -> Result<(), StoreError>;

    /// Subscribes to future events.
    fn subscribe(&self) -> ClusterSubscription;
}

/// An event for all nodes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ClusterEvent {
    /// A node is leaving, and releases its sessions.
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
    /// Wraps an engine's channel, which reports missed events.
    pub fn new(events: broadcast::Receiver<Result<ClusterEvent, Lagged>>) -> Self {
        Self { events }
    }

    /// Returns the next event; `None` when the bus has closed. Cancellation safe.
    ///
    /// # Errors
    /// [`Lagged`] once for each gap. Later events follow.
    pub async fn next(&mut self) -> Option<Result<ClusterEvent, Lagged>> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Err(Lagged)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
