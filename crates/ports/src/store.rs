//! The storage seams of one deployment, together.

use std::sync::Arc;

use crate::{ClusterBus, Directory, EventLog, Journal, Membership};

/// One engine's implementations, which share their data: a fence that the directory raises is the one
/// that the log and the journal check.
#[derive(Clone)]
pub struct Store {
    /// Ownership and records.
    pub directory: Arc<dyn Directory>,
    /// Streams.
    pub log: Arc<dyn EventLog>,
    /// Running calls.
    pub journal: Arc<dyn Journal>,
    /// Nodes.
    pub membership: Arc<dyn Membership>,
    /// What all nodes are told.
    pub bus: Arc<dyn ClusterBus>,
}

impl StoreError {
    /// Whether the same step may go through later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Away(_))
    }
}

/// Why a store refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The writer's epoch is not the newest: somebody else owns the session now.
    #[error("the session has a newer owner")]
    Stale,
    /// The store has lost what the writer has written: it knows less than the session's owner, as after a failover
    /// to a replica that had not got everything. The owner says it again ([`Directory::restore`],
    /// [`Journal::restore`]).
    #[error("the store has forgotten what was written")]
    Forgotten,
    /// There is no such session.
    #[error("no such session")]
    NotFound,
    /// The session is held by a node whose lease lives.
    #[error("the session is held by another node")]
    Held,
    /// A limit of the store is reached.
    #[error("the store is full: {0}")]
    Full(&'static str),
    /// The store did not confirm the step, which may have been done or not.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// The store was not even asked, because it is known to be away or too much waits for it: nothing
    /// was done.
    #[error("the store is away: {0}")]
    Away(String),
}
