//! The seam that remembers which calls run, so that a new owner can attach to them.

use async_trait::async_trait;
use shoal_protocol::{RequestId, StreamId};

use crate::{CallId, Epoch, LogError, SessionId, WorkerId};

/// The running calls of every session that must not be repeated or lost.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Opens a stream and journals the call on it, in one atomic step, before the call is dispatched.
    /// [`EventLog::append`](crate::EventLog::append) with `end` closes the entry.
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        entry: JournalEntry,
    ) -> Result<StreamId, LogError>;

    /// The calls that were begun and have not ended, oldest first.
    async fn running(&self, session: &SessionId)
    -> Result<Vec<(StreamId, JournalEntry)>, LogError>;
}

/// A journaled call.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JournalEntry {
    /// The call.
    pub call: CallId,
    /// The client's request that it answers.
    pub request: RequestId,
    /// Where it runs, once chosen.
    pub worker: Option<WorkerId>,
}
