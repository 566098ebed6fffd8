//! The journal of running calls, from which a new owner resumes them.

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, RawJson, RequestId, StreamId};

use crate::{
    Binding, CallId, DeliveryId, Epoch, LedgerNumber, LogError, SessionId, StoreError, WorkerId,
};

/// The running calls of all sessions that Shoal must not repeat or lose.
///
/// As with [`Directory`](crate::Directory), callers may repeat a method after `Unavailable`.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Journals the calls of one delivery (several for a batch) together with the stream that will carry their answers,
    /// in one atomic step before dispatch. [`EventLog::append`](crate::EventLog::append) closes the entries.
    ///
    /// A delivery opens one stream. If its calls have already begun, this returns their stream as it stands now, for as
    /// long as they are open.
    ///
    /// # Errors
    /// `Stale` for a former owner; `Full` at the session's or the store's limit; `Gone` if the stream to join is
    /// missing or has finished.
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError>;

    /// Records that a call is about to start on a different worker from the journaled one.
    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError>;

    /// Returns the streams with calls that have not ended, oldest first, to their owner.
    ///
    /// # Errors
    /// `Stale` for a former owner, which must not start anything.
    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError>;

    /// Enters an open stream and its calls again after [`StoreError::Forgotten`]. The store keeps the events that it
    /// still has, unless some after them are lost: then the stream begins with `newest`.
    ///
    /// Engines that cannot lose data need not implement this.
    ///
    /// # Errors
    /// `Stale` for a former owner; `Forgotten` if the caller must restore its claim first.
    async fn restore(
        &self,
        _session: &SessionId,
        _epoch: Epoch,
        _stream: OpenStream,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the first position of the stream that was opened for a delivery, whether it runs or has finished.
    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError>;
}

/// Calls to journal.
#[derive(Clone, Debug)]
pub struct Begin {
    /// The delivery that brought the calls.
    pub delivery: DeliveryId,
    /// The stream to answer on; `None` opens a new one, which ends with the last answer.
    pub stream: Option<StreamId>,
    /// The calls; at least one.
    pub entries: Vec<JournalEntry>,
    /// Whether the calls already run. Running calls may use the room that a store reserves for admitted work.
    pub running: bool,
}

/// The result of [`Journal::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The calls are journaled. The id is the end of their stream: the position before the first event if the stream is
    /// new.
    Now(EventId),
    /// Calls for this delivery had already begun. The id is the position before their stream's first event.
    Before(EventId),
}

impl Begun {
    /// The position from which to read the stream.
    pub fn id(self) -> EventId {
        match self {
            Self::Now(id) | Self::Before(id) => id,
        }
    }
}

/// A stream on which calls run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningStream {
    /// The id of its newest event.
    pub last: EventId,
    /// The calls, oldest first.
    pub calls: Vec<JournaledCall>,
}

/// An open stream as its owner knows it.
#[derive(Clone, Debug)]
pub struct OpenStream {
    /// An open stream, as known to its owner.
    pub last: EventId,
    /// The newest events that the owner still has, up to `last`. Their ids differ only in the sequence.
    pub newest: Vec<Bytes>,
    /// The delivery that opened the stream, if known.
    pub delivery: Option<DeliveryId>,
    /// Its calls that have not ended.
    pub calls: Vec<JournaledCall>,
    /// Calls that ended within the newest events: their entries are closed.
    pub ended: Vec<CallId>,
}

/// A call that was begun and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournaledCall {
    /// The journaled entry.
    pub entry: JournalEntry,
    /// The worker's number of the call's last logged event.
    pub seen: u64,
}

/// A journaled call.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JournalEntry {
    /// The call.
    pub call: CallId,
    /// The client's request that the call answers.
    pub request: RequestId,
    /// The worker that runs the call, or will.
    pub worker: Option<WorkerId>,
    /// The worker's ledger number under which the call was bound. Entries from older releases, and from workers without
    /// a ledger, lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerNumber>,
    /// The session's data for starting the call.
    pub start: RawJson,
}
