use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    Begin, Begun, DeliveryId, Epoch, Journal, LogError, SessionId, StoreError, StreamSettings,
};
use shoal_protocol::EventId;
use shoal_session::SessionConfig;

use super::Bench;
use super::over::{JournalOver, Over};

pub struct Flaky {
    inner: Arc<dyn Journal>,
    pub full: AtomicBool,
    says: Mutex<Option<StoreError>>,
    pub looks: AtomicUsize,
    pub begins: AtomicUsize,
}

impl Flaky {
    pub fn says(&self, says: Option<StoreError>) {
        *self.says.lock() = says;
    }
}

pub fn away() -> StoreError {
    StoreError::Away("the test says so".to_owned())
}

#[async_trait]
impl JournalOver for Flaky {
    fn journal(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError> {
        self.begins.fetch_add(1, SeqCst);
        if let Some(error) = self.says.lock().clone() {
            return Err(error.into());
        }
        if self.full.load(SeqCst) && !begin.running {
            return Err(StoreError::Full("the test says so").into());
        }
        self.inner.begin(session, epoch, begin).await
    }

    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError> {
        self.looks.fetch_add(1, SeqCst);
        self.inner.delivered(session, delivery).await
    }
}

pub fn flaky(config: SessionConfig) -> (Bench, Arc<Flaky>) {
    let mut store = MemoryStore::new(StreamSettings::default()).into_store();
    let flaky = Arc::new(Flaky {
        inner: store.journal.clone(),
        full: AtomicBool::new(false),
        says: Mutex::default(),
        looks: AtomicUsize::new(0),
        begins: AtomicUsize::new(0),
    });
    store.journal = Arc::new(Over(flaky.clone()));
    (Bench::on(store, config), flaky)
}
