use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, RawJson, RequestId, StreamId};

use crate::{
    Binding, CallId, DeliveryId, Epoch, LedgerNumber, LogError, SessionId, StoreError, WorkerId,
};

/// Stores the running calls that Shoal must not repeat or lose.
///
/// Callers may repeat a method after `Unavailable`, as for [`Directory`](crate::Directory).
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Journals one delivery's calls and opens their stream, in one atomic step before the calls start.
    /// [`EventLog::append`](crate::EventLog::append) closes the entries.
    ///
    /// If the calls are already journaled and have not ended, returns the current end of their stream. If the
    /// delivery opened a stream for other calls or for ended ones, journals nothing and returns [`Begun::Before`].
    ///
    /// # Errors
    /// `Stale` for a former session owner; `Full` at the session's or the store's limit; `Gone` if the stream to join
    /// is missing or has finished.
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError>;

    /// Records that a journaled call is about to start on another worker.
    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError>;

    /// Returns the session's streams with open calls, the oldest first.
    ///
    /// # Errors
    /// `Stale` for a former session owner.
    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError>;

    /// Enters an open stream and its calls again after [`StoreError::Forgotten`]. If the store lost events, the
    /// stream begins with `newest`.
    ///
    /// Only engines that can lose data implement this.
    ///
    /// # Errors
    /// `Stale` for a former session owner; `Forgotten` if the claim must be restored first.
    async fn restore(
        &self,
        _session: &SessionId,
        _epoch: Epoch,
        _stream: OpenStream,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the beginning of a delivery's stream, open or finished.
    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError>;
}

/// Calls to journal.
#[derive(Clone, Debug)]
pub struct Begin {
    /// The calls' delivery.
    pub delivery: DeliveryId,
    /// The stream to join. `None` opens a stream.
    pub stream: Option<StreamId>,
    /// At least one call.
    pub entries: Vec<JournalEntry>,
    /// Whether the calls run already, and so may use room that the store reserves for running calls.
    pub running: bool,
}

/// The result of [`Journal::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The calls are journaled; the id is their stream's end.
    Now(EventId),
    /// The delivery had opened a stream before; the id is its beginning.
    Before(EventId),
}

impl Begun {
    /// Returns the position from which to read the stream.
    pub fn id(self) -> EventId {
        match self {
            Self::Now(id) | Self::Before(id) => id,
        }
    }
}

/// A stream with running calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningStream {
    /// The newest event's id.
    pub last: EventId,
    /// Open calls, the oldest first.
    pub calls: Vec<JournaledCall>,
}

/// An open stream as its owner knows it.
#[derive(Clone, Debug)]
pub struct OpenStream {
    /// The newest event's id.
    pub last: EventId,
    /// The newest events in memory, up to `last`, with consecutive ids.
    pub newest: Vec<Bytes>,
    /// The stream's delivery, if known.
    pub delivery: Option<DeliveryId>,
    /// Open calls.
    pub calls: Vec<JournaledCall>,
    /// Calls that ended within the newest events.
    pub ended: Vec<CallId>,
}

/// A journaled call that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournaledCall {
    /// The journal's entry.
    pub entry: JournalEntry,
    /// The worker's number of the last logged event.
    pub seen: u64,
}

/// A call's entry in the journal.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JournalEntry {
    /// The call's id.
    pub call: CallId,
    /// The id of the client's request.
    pub request: RequestId,
    /// The worker that runs the call, or will.
    pub worker: Option<WorkerId>,
    /// The worker's ledger number at binding. `None` if the worker announced none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerNumber>,
    /// Data for starting the call.
    pub start: RawJson,
}
