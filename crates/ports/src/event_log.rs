//! The seam that keeps streams, so that any node can resume any of them.

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, StreamId};

use crate::{CallId, Epoch, Kind, SessionId, StoreError};

/// The events of every stream, numbered.
///
/// An append is atomic: all of its events get consecutive numbers or none does. Appended is promised: an
/// event that `append` has returned is read by every later `read`, on any node, until a limit or the
/// retention time removes it, and then `read` says so.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Appends events and notes how far their call has come, in one step. Streams come into being by
    /// [`Journal::begin`](crate::Journal::begin); [`StreamId::STANDALONE`] always exists. A stream that
    /// was opened for calls finishes when the last of them has ended, and is kept for the engine's
    /// retention time.
    ///
    /// Idempotent: an append that has been done already, whose reply was lost, succeeds and does nothing.
    ///
    /// # Errors
    /// `Stale` for a former owner, or when the stream stands after `append.after` (somebody else has written);
    /// `Forgotten` when it does not reach that far, or is not there; `Gone` for events after a stream's end; `Full` at the
    /// session's or the store's limit. An append that ends a call is refused for its size by the session's limit alone, so
    /// that calls can end when the store is full.
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError>;

    /// The id of the newest event of a stream (the one before the first, when there is none).
    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

    /// The id after which every event of a stream is there: that of the newest one that is not, or the one before the first.
    async fn oldest(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

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

/// What to append.
#[derive(Clone, Debug)]
pub struct Append {
    /// The id of the stream's newest event, as the owner knows it.
    pub after: EventId,
    /// The events.
    pub events: Vec<Bytes>,
    /// How far the call that they come from has got, if they come from a call.
    pub progress: Option<CallProgress>,
}

/// How far a journaled call has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallProgress {
    /// The call.
    pub call: CallId,
    /// The worker's number of the last event that is in the log with this append.
    pub seen: u64,
    /// Whether that was the call's end: its journal entry is closed.
    pub ended: bool,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The id of the last event appended (of the last before, when none was).
    pub last: EventId,
    /// Whether the stream is finished: its last call has ended.
    pub finished: bool,
    /// Bytes of events that the log now keeps for the session.
    pub kept: u64,
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
            Self::Store(
                StoreError::Forgotten | StoreError::Unavailable(_) | StoreError::Away(_),
            ) => Kind::Unavailable,
        }
    }
}
