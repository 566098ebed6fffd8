use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, StreamId};

use crate::{CallId, Epoch, Kind, SessionId, StoreError};

/// Stores the events of streams, from which clients resume.
///
/// An append is atomic. Once it returns, every `read` on any node sees its events until a limit or
/// the retention time removes them, and then `read` returns `Gone`.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Appends events to a stream and records their call's progress, in one step.
    /// [`Journal::begin`](crate::Journal::begin) creates streams; [`StreamId::STANDALONE`] always
    /// exists. A stream finishes with its last call, and is kept for the retention time.
    ///
    /// Repeating an append has no further effect.
    ///
    /// # Errors
    /// `Stale` for a former session owner, or if another writer moved the stream beyond
    /// `append.after`; `Forgotten` if the stream is missing or ends before `append.after`; `Gone`
    /// if the stream has finished; `Full` at the session's or the store's limit. Only the session's
    /// limit applies to an append that ends a call.
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError>;

    /// Returns the newest event's position.
    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

    /// Returns the position after which the log has all events of the stream.
    async fn oldest(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

    /// Returns up to `limit` events after `cursor`, in order.
    ///
    /// # Errors
    /// `Gone` if the log lacks the next event, or the cursor is from another log.
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
    /// The last position that the owner knows.
    pub after: EventId,
    /// JSON-RPC messages.
    pub events: Vec<Bytes>,
    /// Progress of the call that sent the events.
    pub progress: Option<CallProgress>,
}

/// The progress of a journaled call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallProgress {
    /// The call's id.
    pub call: CallId,
    /// The worker's number of the last event.
    pub seen: u64,
    /// The call has ended.
    pub ended: bool,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The new position.
    pub last: EventId,
    /// The stream's last call has ended.
    pub finished: bool,
    /// Bytes of the session's kept events.
    pub kept: u64,
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events, in order.
    pub events: Vec<LoggedEvent>,
    /// Whether `events` reaches a finished stream's end.
    pub finished: bool,
}

/// An event in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// The event's id.
    pub id: EventId,
    /// The JSON-RPC message.
    pub data: Bytes,
}

/// Why the log refused an operation, or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// A failure of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log lacks the events.
    #[error("the history is gone: {0}")]
    Gone(&'static str),
}

impl LogError {
    /// Returns the error's kind.
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
