//! The storage seams of one deployment.

use std::sync::Arc;

use crate::{ClusterBus, Directory, EventLog, Journal, Membership};

/// The storage seams of one engine. When the directory raises a session's epoch, this also fences writes to the log and
/// the journal.
#[derive(Clone)]
pub struct Store {
    /// Sessions' owners and records.
    pub directory: Arc<dyn Directory>,
    /// Streams' events.
    pub log: Arc<dyn EventLog>,
    /// Running calls.
    pub journal: Arc<dyn Journal>,
    /// The cluster's nodes and pools.
    pub membership: Arc<dyn Membership>,
    /// The cluster bus.
    pub bus: Arc<dyn ClusterBus>,
}

impl StoreError {
    /// Whether the store could not be reached, so that the operation may succeed later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Away(_))
    }
}

/// Why a store refused an operation, or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another node owns the session by now.
    #[error("the session has a newer owner")]
    Stale,
    /// The store has lost writes that it had confirmed, as after a failover. The session's owner restores them
    /// ([`Directory::restore`], [`Journal::restore`]).
    #[error("the store has forgotten what was written")]
    Forgotten,
    /// The session does not exist.
    #[error("no such session")]
    NotFound,
    /// Another node's lease on the session lives.
    #[error("the session is held by another node")]
    Held,
    /// The store has reached a limit.
    #[error("the store is full: {0}")]
    Full(&'static str),
    /// The store did not confirm the operation, but may have carried it out.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// The operation was not sent to the store.
    #[error("the store is away: {0}")]
    Away(String),
}
