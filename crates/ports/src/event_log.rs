//! The event log, from which streams are resumed.

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, StreamId};

use crate::{CallId, Epoch, Kind, SessionId, StoreError};

/// The numbered events of every stream.
///
/// An append is atomic. Once it returns, every later `read` on any node sees its events, until a limit or the retention
/// time removes them; then `read` reports that.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Appends events and records their call's progress, in one step. [`Journal::begin`](crate::Journal::begin) creates
    /// streams; [`StreamId::STANDALONE`] always exists. A stream finishes with its last call and is kept for the
    /// retention time.
    ///
    /// Idempotent.
    ///
    /// # Errors
    /// `Stale` for a former owner, or if another writer has moved the stream beyond `append.after`; `Forgotten` if the
    /// stream is missing or ends earlier; `Gone` after a stream's end; `Full` at the session's or the store's limit, of
    /// which only the first applies to a call's end.
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError>;

    /// Returns the position of a stream's newest event.
    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

    /// Returns the position after which all events are kept.
    async fn oldest(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

    /// Returns up to `limit` events after `cursor`, in order.
    ///
    /// # Errors
    /// `Gone` if the next event is missing, or the cursor is from another log.
    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError>;
}

/// Events to append.
#[derive(Clone, Debug)]
pub struct Append {
    /// The owner's last known position.
    pub after: EventId,
    /// The events.
    pub events: Vec<Bytes>,
    /// The progress of the sending call.
    pub progress: Option<CallProgress>,
}

/// The progress of a journaled call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallProgress {
    /// The call.
    pub call: CallId,
    /// The worker's number of the last event.
    pub seen: u64,
    /// Whether the call has ended.
    pub ended: bool,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The stream's new position.
    pub last: EventId,
    /// Whether the last call has ended.
    pub finished: bool,
    /// Bytes of events kept for the session.
    pub kept: u64,
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events, in order.
    pub events: Vec<LoggedEvent>,
    /// Whether `events` reaches the end of a finished stream.
    pub finished: bool,
}

/// An event in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its id.
    pub id: EventId,
    /// The JSON-RPC message.
    pub data: Bytes,
}

/// Why the log refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// A failure of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The requested history is missing.
    #[error("the history is gone: {0}")]
    Gone(&'static str),
}

impl LogError {
    /// The error's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Gone(_) => Kind::Gone,
            Self::Store(StoreError::NotFound) => Kind::NotFound,
            Self::Store(StoreError::Full(_)) => Kind::Overloaded,
            Self::Store(StoreError::Stale | StoreError::Held) => Kind::Conflict,
            Self::Store(
                StoreError::Forgotten | StoreError::Unavailable(_) | StoreError::Away(_),
            ) => Kind::Unavailable,
        }
    }
}
