//! The event log, from which any node can resume any stream.

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, StreamId};

use crate::{CallId, Epoch, Kind, SessionId, StoreError};

/// The numbered events of every stream.
///
/// An append is atomic: its events get consecutive numbers, or all are refused. Once `append` returns, every later
/// `read` on any node sees its events, until a limit or the retention time removes them. `read` reports such a removal.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Appends events and records their call's progress, in one step. [`Journal::begin`](crate::Journal::begin) creates
    /// streams; [`StreamId::STANDALONE`] always exists. A stream for calls finishes when the last of them has ended,
    /// and is kept for the engine's retention time.
    ///
    /// Idempotent: repeating a completed append succeeds without a change.
    ///
    /// # Errors
    /// `Stale` for a former owner, or if the stream has moved beyond `append.after` through another writer; `Forgotten`
    /// if the stream is missing or ends earlier; `Gone` for events after a stream's end; `Full` at the session's or the
    /// store's limit. For an append that ends a call only the session's limit counts, so that calls can end when the
    /// store is full.
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError>;

    /// Returns the id of a stream's newest event, or the position before the first event.
    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

    /// Returns the position after which every event of a stream is still there.
    async fn oldest(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;

    /// Returns up to `limit` events after `cursor`, in order.
    ///
    /// # Errors
    /// `Gone` if an event after the cursor is missing, or the cursor belongs to another incarnation of the log or to
    /// another session.
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
    /// The id of the stream's newest event, as known to the owner.
    pub after: EventId,
    /// The events.
    pub events: Vec<Bytes>,
    /// The progress of the call that sent the events, if a call did.
    pub progress: Option<CallProgress>,
}

/// The progress of a journaled call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallProgress {
    /// The call.
    pub call: CallId,
    /// The worker's number of the last event in this append.
    pub seen: u64,
    /// Whether the call has ended, which closes its journal entry.
    pub ended: bool,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The id of the stream's newest event after the append.
    pub last: EventId,
    /// Whether the stream is finished: its last call has ended.
    pub finished: bool,
    /// Bytes of events that the log now keeps for the session.
    pub kept: u64,
}

/// A part of a stream.
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
