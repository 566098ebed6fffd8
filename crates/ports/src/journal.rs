//! The seam that remembers which calls run, so that a new owner can attach to them.

use async_trait::async_trait;
use shoal_protocol::{EventId, RequestId, StreamId};

use crate::{CallId, Epoch, LogError, SessionId, WorkerId};

/// The running calls of every session that must not be repeated or lost.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Opens a stream and journals the calls that will be answered on it (one, but for a batch), in one
    /// atomic step, before they are dispatched. Returns the id that stands before the stream's first
    /// event. [`EventLog::append`](crate::EventLog::append) with `end` closes the entries.
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        entries: Vec<JournalEntry>,
    ) -> Result<EventId, LogError>;

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
