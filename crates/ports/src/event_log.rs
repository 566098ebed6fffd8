//! The seam that keeps streams, so that any node can resume any of them.

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, StreamId};

use crate::{Epoch, Kind, SessionId, StoreError};

/// The events of every stream, numbered.
///
/// An append is atomic: all of its events get consecutive numbers or none does. Appended is promised: an
/// event that `append` has returned is read by every later `read`, on any node, until a limit or the
/// retention time removes it, and then `read` says so.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Opens a new stream and returns the id that stands before its first event
    /// ([`StreamId::STANDALONE`] always exists). Calls that are journaled get theirs from
    /// [`Journal::begin`](crate::Journal::begin).
    async fn open(&self, session: &SessionId, epoch: Epoch) -> Result<EventId, LogError>;

    /// Appends events, and with `end` finishes the stream and closes its journal entry in the same step.
    /// A finished stream is kept for the engine's retention time.
    ///
    /// # Errors
    /// `Stale` for a former owner; `Full` at the session's or the store's limit.
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        stream: StreamId,
        events: Vec<Bytes>,
        end: bool,
    ) -> Result<Appended, LogError>;

    /// The id that stands before the first event of a stream: where a reader of all begins.
    async fn beginning(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

    /// Up to `limit` events after `cursor`, in order.
    ///
    /// # Errors
    /// `Gone` when an event after the cursor is no longer there, or the cursor is from another
    /// incarnation of the log or from no stream of this session.
    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError>;
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The id of the last event appended (of the last before, when none was).
    pub last: EventId,
}

/// A piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events, in order.
    pub events: Vec<LoggedEvent>,
    /// Whether the stream is finished and `events` reaches its end.
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
    /// The store's own reasons.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The history asked for is not there.
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
            Self::Store(StoreError::Unavailable(_)) => Kind::Unavailable,
        }
    }
}
