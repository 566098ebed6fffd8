//! The seam that remembers which calls run, so that a new owner can resume them.

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, RawJson, RequestId, StreamId};

use crate::{
    Binding, CallId, DeliveryId, Epoch, LedgerNumber, LogError, SessionId, StoreError, WorkerId,
};

/// The running calls of every session that must not be repeated or lost.
///
/// As with [`Directory`](crate::Directory), a method may be called again after `Unavailable`.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Journals calls (one, but for a batch) together with the stream that they will be answered on, in
    /// one atomic step, before they are dispatched. [`EventLog::append`](crate::EventLog::append) closes
    /// the entries.
    ///
    /// A delivery opens one stream: if other calls were begun for it, nothing is begun. A repetition finds the calls begun, and
    /// their stream where it stands by then, for as long as they are open.
    ///
    /// # Errors
    /// `Stale` for a former owner; `Full` at the session's or the store's limit; `Gone` if the stream to
    /// join is not there or has finished.
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError>;

    /// Says that a call is about to be started on another worker than the one journaled.
    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError>;

    /// The streams with calls that were begun and have not ended, oldest first; for their owner only.
    ///
    /// # Errors
    /// `Stale` for a former owner, who must not start anything.
    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError>;

    /// Enters an open stream and its calls again, after [`StoreError::Forgotten`]. What the store has kept of it stays,
    /// but for events after which it has forgotten some: then the stream begins with the `newest`.
    ///
    /// For engines that lose nothing there is nothing to do.
    ///
    /// # Errors
    /// `Stale` for a former owner; `Forgotten` if its claim is to be entered first.
    async fn restore(
        &self,
        _session: &SessionId,
        _epoch: Epoch,
        _stream: OpenStream,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Where the stream begins that was opened for a delivery, running or finished.
    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError>;
}

/// Calls to journal.
#[derive(Clone, Debug)]
pub struct Begin {
    /// What brought them.
    pub delivery: DeliveryId,
    /// The stream to answer on; `None` opens a new one, which ends with the last answer.
    pub stream: Option<StreamId>,
    /// The calls; at least one.
    pub entries: Vec<JournalEntry>,
    /// Whether they run already. Then what a store has in reserve to serve and to end what was admitted is there for
    /// them too.
    pub running: bool,
}

/// What came of [`Journal::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The calls are journaled; the id stands where their stream ends now, before its first event if it
    /// is new.
    Now(EventId),
    /// Other calls were begun for this delivery before; the id stands before their stream's first event.
    Before(EventId),
}

impl Begun {
    /// Where a reader of the stream begins.
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
    /// The id of its newest event.
    pub last: EventId,
    /// Its newest events, as many as the owner has at hand, up to `last`; their ids differ in their sequence only.
    pub newest: Vec<Bytes>,
    /// What it was opened for, if that is known.
    pub delivery: Option<DeliveryId>,
    /// Its calls that have not ended.
    pub calls: Vec<JournaledCall>,
    /// Calls whose ends are among its newest events: their entries are closed.
    pub ended: Vec<CallId>,
}

/// A call that was begun and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournaledCall {
    /// What was journaled.
    pub entry: JournalEntry,
    /// The worker's number of the last event of the call that is in the log.
    pub seen: u64,
}

/// A journaled call.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JournalEntry {
    /// The call.
    pub call: CallId,
    /// The client's request that it answers.
    pub request: RequestId,
    /// Where it runs, or will.
    pub worker: Option<WorkerId>,
    /// The number of that worker's ledger under which the call was bound; not known of an entry that an older release
    /// wrote, nor of a worker that announces none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerNumber>,
    /// What is needed to start it, as the session wrote it.
    pub start: RawJson,
}
