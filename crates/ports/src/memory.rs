//! The embedded engines: everything in this process, nothing survives it.

mod bus;
mod data;
mod directory;
mod event_log;
mod journal;
mod membership;
mod quota;

use std::sync::Arc;

pub use bus::MemoryBus;
use data::Data;
pub use data::MemoryLimits;
pub use quota::MemoryQuotas;

use crate::Store;

/// The embedded store: one map of sessions behind all storage seams.
#[derive(Clone)]
pub struct MemoryStore {
    data: Arc<Data>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(limits: MemoryLimits) -> Self {
        Self {
            data: Arc::new(Data::new(limits)),
        }
    }

    /// The store behind all seams.
    pub fn into_store(self) -> Store {
        let engine = Arc::new(self);
        Store {
            directory: engine.clone(),
            log: engine.clone(),
            journal: engine.clone(),
            membership: engine,
            bus: Arc::new(MemoryBus::default()),
        }
    }

    /// Bytes of events held now, over all sessions.
    pub fn event_bytes(&self) -> usize {
        self.data.event_bytes()
    }
}
