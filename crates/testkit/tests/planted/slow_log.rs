//! A log that can delay its appends, and drop their fencing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use shoal_ports::{
    Append, Appended, Epoch, EventLog, LogError, Page, SessionId, Store, StoreError,
};
use shoal_protocol::{EventId, StreamId};
use tokio::sync::watch;

pub(crate) struct SlowLog {
    store: Store,
    fenced: bool,
    held: watch::Sender<bool>,
    sent: AtomicUsize,
    arrived: AtomicUsize,
}

impl SlowLog {
    pub(crate) fn before(store: Store, fenced: bool) -> Arc<Self> {
        Arc::new(Self {
            store,
            fenced,
            held: watch::Sender::new(false),
            sent: AtomicUsize::new(0),
            arrived: AtomicUsize::new(0),
        })
    }

    pub(crate) fn hold(&self) {
        self.held.send_replace(true);
    }

    pub(crate) fn let_go(&self) {
        self.held.send_replace(false);
    }

    pub(crate) fn under_way(&self) -> usize {
        let arrived = self.arrived.load(Ordering::SeqCst);
        self.sent.load(Ordering::SeqCst) - arrived
    }

    /// Appends with the newest epoch, at the end of the stream. The fault needs both: after a write
    /// of the current owner, the store would refuse a former owner by its epoch or by its position.
    async fn append_as_owner(
        &self,
        session: &SessionId,
        append: Append,
    ) -> Result<Appended, LogError> {
        let placement = self.store.directory.lookup(session).await?;
        let epoch = placement.ok_or(StoreError::NotFound)?.epoch;
        let after = self.store.log.last(session, append.after.stream).await?;
        let append = Append { after, ..append };
        self.store.log.append(session, epoch, append).await
    }
}

#[async_trait]
impl EventLog for SlowLog {
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let mut held = self.held.subscribe();
        held.wait_for(|held| !held).await.expect("it is not gone");
        let appended = match self.fenced {
            true => self.store.log.append(session, epoch, append).await,
            false => self.append_as_owner(session, append).await,
        };
        self.arrived.fetch_add(1, Ordering::SeqCst);
        appended
    }

    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        self.store.log.last(session, stream).await
    }

    async fn oldest(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        self.store.log.oldest(session, stream).await
    }

    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError> {
        self.store.log.read(session, cursor, limit).await
    }
}
