//! The journal of running calls.

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, RawJson, RequestId, StreamId};

use crate::{
    Binding, CallId, DeliveryId, Epoch, LedgerNumber, LogError, SessionId, StoreError, WorkerId,
};

/// The running calls that Shoal must not repeat or lose.
///
/// Callers may repeat a method after `Unavailable`, as for [`Directory`](crate::Directory).
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Journals the calls of one delivery and opens their stream, in one atomic step before dispatch.
    /// [`EventLog::append`](crate::EventLog::append) closes the entries.
    ///
    /// If the delivery's calls have already begun and are open, this returns their stream as it stands.
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

    /// Records that a call is about to start on another worker.
    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError>;

    /// Returns the streams with open calls, oldest first.
    ///
    /// # Errors
    /// `Stale` for a former owner.
    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError>;

    /// Enters an open stream and its calls again after [`StoreError::Forgotten`]. Stored events stay, unless later ones
    /// are lost: then the stream begins with `newest`.
    ///
    /// Only engines that can lose data implement this.
    ///
    /// # Errors
    /// `Stale` for a former owner; `Forgotten` if the claim must be restored first.
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
    /// The delivery that brought the calls.
    pub delivery: DeliveryId,
    /// The stream to join; `None` opens one, which ends with the last answer.
    pub stream: Option<StreamId>,
    /// The calls; at least one.
    pub entries: Vec<JournalEntry>,
    /// Whether the calls already run, and may use a store's reserve.
    pub running: bool,
}

/// The result of [`Journal::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The calls are journaled. The id is the present end of their stream.
    Now(EventId),
    /// The calls had already begun. The id is the beginning of their stream.
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
    /// The newest events at hand, up to `last`, with consecutive ids.
    pub newest: Vec<Bytes>,
    /// The delivery that opened the stream, if known.
    pub delivery: Option<DeliveryId>,
    /// Its calls that have not ended.
    pub calls: Vec<JournaledCall>,
    /// Calls that ended within the newest events.
    pub ended: Vec<CallId>,
}

/// An open call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournaledCall {
    /// The journaled entry.
    pub entry: JournalEntry,
    /// The worker's number of the last logged event.
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
    /// The ledger number of the binding, unless the entry or the worker lacks one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerNumber>,
    /// The session's data for starting the call.
    pub start: RawJson,
}
