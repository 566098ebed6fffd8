//! The embedded storage engines, which keep their data in memory.

mod cluster_bus;
mod data;
mod directory;
mod event_log;
mod journal;
mod membership;
mod quota;

use std::sync::Arc;

use data::MemoryData;
pub use quota::MemoryQuotas;
use tokio::sync::broadcast;

use crate::{ClusterEvent, Lagged, Store, StreamSettings};

/// The embedded store. Clones share the data.
#[derive(Clone)]
pub struct MemoryStore {
    data: Arc<MemoryData>,
    subscribers: broadcast::Sender<Result<ClusterEvent, Lagged>>,
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new(streams: StreamSettings) -> Self {
        Self {
            data: Arc::new(MemoryData::new(streams)),
            subscribers: broadcast::Sender::new(cluster_bus::BACKLOG),
        }
    }

    /// Returns this engine as a store, behind every storage trait.
    pub fn into_store(self) -> Store {
        let engine = Arc::new(self);
        Store {
            directory: engine.clone(),
            log: engine.clone(),
            journal: engine.clone(),
            membership: engine.clone(),
            bus: engine,
        }
    }

    /// Returns the event bytes of all sessions.
    pub fn event_bytes(&self) -> usize {
        self.data.event_bytes()
    }
}
