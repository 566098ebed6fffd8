use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    Append, Appended, Directory, Epoch, EventLog, LogError, NewSession, SessionId, Store,
    StoreError, StreamSettings,
};

use super::over::{DirectoryOver, EventLogOver, Over};

pub struct Counted {
    store: Store,
    appends: parking_lot::Mutex<Vec<usize>>,
    records: AtomicUsize,
    away: AtomicBool,
    mute: AtomicBool,
}

impl Counted {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            store: MemoryStore::new(StreamSettings::default()).into_store(),
            appends: parking_lot::Mutex::default(),
            records: AtomicUsize::new(0),
            away: AtomicBool::new(false),
            mute: AtomicBool::new(false),
        })
    }

    pub fn store(self: &Arc<Self>) -> Store {
        Store {
            directory: Arc::new(Over(self.clone())),
            log: Arc::new(Over(self.clone())),
            ..self.store.clone()
        }
    }

    pub fn writes(&self) -> (usize, usize) {
        (
            self.appends.lock().len(),
            self.records.load(Ordering::SeqCst),
        )
    }

    #[allow(dead_code, reason = "not every test asks")]
    pub fn appended(&self) -> Vec<usize> {
        self.appends.lock().clone()
    }

    pub fn refuse(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    #[allow(dead_code, reason = "not every test asks")]
    pub fn mute(&self, mute: bool) {
        self.mute.store(mute, Ordering::SeqCst);
    }
}

#[async_trait]
impl EventLogOver for Counted {
    fn log(&self) -> &dyn EventLog {
        &*self.store.log
    }

    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the test says so".to_owned()).into());
        }
        self.appends.lock().push(append.events.len());
        self.store.log.append(session, epoch, append).await
    }
}

#[async_trait]
impl DirectoryOver for Counted {
    fn directory(&self) -> &dyn Directory {
        &*self.store.directory
    }

    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError> {
        self.records.fetch_add(1, Ordering::SeqCst);
        self.store.directory.create(new).await
    }

    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError> {
        if self.mute.load(Ordering::SeqCst) {
            return Err(StoreError::Away("the test says so".to_owned()));
        }
        tokio::task::yield_now().await;
        self.store.directory.held(sessions).await
    }

    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        self.records.fetch_add(1, Ordering::SeqCst);
        let directory = &self.store.directory;
        directory.save(session, epoch, record, idle).await
    }

    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        self.records.fetch_add(1, Ordering::SeqCst);
        let directory = &self.store.directory;
        directory.release(session, epoch, record, idle).await
    }
}
