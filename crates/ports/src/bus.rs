//! The seam that carries news to every node.

use async_trait::async_trait;
use shoal_protocol::RawJson;
use tokio::sync::broadcast;

use crate::{NodeId, SessionId, StoreError};

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
pub struct BusSubscription {
    source: Source,
}

enum Source {
    News(broadcast::Receiver<BusEvent>),
    NewsAndGaps(broadcast::Receiver<Result<BusEvent, Lagged>>),
}

/// News was missed: assume that everything changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;

impl BusSubscription {
    /// Wraps the channel that an engine feeds.
    pub fn new(receiver: broadcast::Receiver<BusEvent>) -> Self {
        Self {
            source: Source::News(receiver),
        }
    }

    /// As [`BusSubscription::new`], for an engine that may miss news itself and says so.
    pub fn with_gaps(receiver: broadcast::Receiver<Result<BusEvent, Lagged>>) -> Self {
        Self {
            source: Source::NewsAndGaps(receiver),
        }
    }

    /// The next piece of news; `None` when the bus has closed. Cancellation safe.
    pub async fn next(&mut self) -> Option<Result<BusEvent, Lagged>> {
        let received = match &mut self.source {
            Source::News(receiver) => receiver.recv().await.map(Ok),
            Source::NewsAndGaps(receiver) => receiver.recv().await,
        };
        match received {
            Ok(news) => Some(news),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Err(Lagged)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
