/// Why a store refused an operation, or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The writer's epoch is old, or another writer has moved the stream.
    #[error("the session has a newer owner")]
    Stale,
    /// The store lost confirmed writes, as after a failover. The owner restores them
    /// ([`Directory::restore`](crate::Directory::restore), [`Journal::restore`](crate::Journal::restore)).
    #[error("the store has forgotten what was written")]
    Forgotten,
    /// The session does not exist.
    #[error("no such session")]
    NotFound,
    /// Another node owns the session, or the session to create exists.
    #[error("the session is held by another node")]
    Held,
    /// A limit is reached.
    #[error("the store is full: {0}")]
    Full(&'static str),
    /// The store did not confirm the operation, which may have happened.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// The store did not get the operation.
    #[error("the store is away: {0}")]
    Away(String),
}

impl StoreError {
    /// Whether the store could not be reached, so that a retry may succeed.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Away(_))
    }
}
