//! The storage seams of one deployment.

use std::sync::Arc;

use crate::{ClusterBus, Directory, EventLog, Journal, Membership};

/// The storage seams of one engine. An epoch raised in the directory also fences log and journal.
#[derive(Clone)]
pub struct Store {
    /// Ownership and records.
    pub directory: Arc<dyn Directory>,
    /// Streams.
    pub log: Arc<dyn EventLog>,
    /// Running calls.
    pub journal: Arc<dyn Journal>,
    /// Membership.
    pub membership: Arc<dyn Membership>,
    /// The cluster bus.
    pub bus: Arc<dyn ClusterBus>,
}

impl StoreError {
    /// Whether the step may succeed later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Away(_))
    }
}

/// Why a store refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another node owns the session.
    #[error("the session has a newer owner")]
    Stale,
    /// The store has lost confirmed writes, as after a failover. The owner restores them ([`Directory::restore`],
    /// [`Journal::restore`]).
    #[error("the store has forgotten what was written")]
    Forgotten,
    /// The session does not exist.
    #[error("no such session")]
    NotFound,
    /// Another node holds the session.
    #[error("the session is held by another node")]
    Held,
    /// The store has reached a limit.
    #[error("the store is full: {0}")]
    Full(&'static str),
    /// The step was not confirmed and may have been done.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// The request was not sent.
    #[error("the store is away: {0}")]
    Away(String),
}
