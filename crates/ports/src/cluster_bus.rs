//! The seam that carries events to every node.

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::{NodeId, SessionId, StoreError};

/// Carries events to all nodes. Delivery is best effort: nothing durable depends on it, and whoever must know looks for
/// itself now and then.
///
/// What concerns one process alone is not for it: see [`Dispatcher::resource_updates`](crate::Dispatcher::resource_updates).
#[async_trait]
pub trait ClusterBus: Send + Sync + 'static {
    /// Publishes to every subscriber of every node, this one included. Subscribers get the events of one publisher in
    /// its order. Dropped before its end, it may have published or not.
    ///
    /// # Errors
    /// When the store does not take it. It may have been published all the same.
    async fn publish(&self, event: ClusterEvent) -> Result<(), StoreError>;

    /// Subscribes to everything that is published from now on.
    fn subscribe(&self) -> ClusterSubscription;
}

/// What all nodes are told.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ClusterEvent {
    /// A node is leaving, or has left: its sessions may be claimed as they are given up.
    NodeLeft {
        /// Which.
        node: NodeId,
    },
    /// The status of a task has changed: whoever wants to know asks for it.
    TaskChanged {
        /// Which.
        task: SessionId,
    },
}

/// A subscriber's end.
pub struct ClusterSubscription {
    events: broadcast::Receiver<Result<ClusterEvent, Lagged>>,
}

/// Events were missed: assume that everything changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;

impl ClusterSubscription {
    /// Wraps the channel that an engine feeds. An engine that has missed events itself says so there.
    pub fn new(events: broadcast::Receiver<Result<ClusterEvent, Lagged>>) -> Self {
        Self { events }
    }

    /// The next event; `None` when the bus has closed. Cancellation safe.
    ///
    /// # Errors
    /// [`Lagged`] once for each gap: the subscriber fell behind, or the engine was cut off. Later events follow.
    pub async fn next(&mut self) -> Option<Result<ClusterEvent, Lagged>> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Err(Lagged)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
