use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    Claim, Directory, Epoch, Evidence, NewSession, NodeId, Placement, SessionId, StoreError,
    StreamSettings,
};
use shoal_session::SessionConfig;
use tokio::sync::watch;
use tokio::time::sleep;

use super::over::{DirectoryOver, Over};
use super::{Bench, within};

const RECORDS_OUTLIVE: u32 = 16;

/// A directory whose claims and saves of one session wait if a test asks for it.
pub struct Unsteady {
    inner: Arc<dyn Directory>,
    faulty: AtomicBool,
    chance: AtomicU64,
    held: watch::Sender<Option<SessionId>>,
    waiting: watch::Sender<usize>,
    pub disowns: AtomicBool,
}

impl Unsteady {
    pub fn fail(&self, faulty: bool) {
        self.faulty.store(faulty, SeqCst);
    }

    pub fn hold(&self, session: &SessionId) {
        self.held.send_replace(Some(session.clone()));
    }

    pub async fn until_held(&self) {
        let mut waiting = self.waiting.subscribe();
        within(waiting.wait_for(|count| *count > 0)).await.unwrap();
    }

    pub fn release(&self) {
        self.held.send_replace(None);
    }

    async fn until_released(&self, session: &SessionId) {
        let mut held = self.held.subscribe();
        if held.borrow_and_update().as_ref() == Some(session) {
            self.waiting.send_modify(|count| *count += 1);
            held.wait_for(Option::is_none).await.unwrap();
            self.waiting.send_modify(|count| *count -= 1);
        }
    }

    fn one_of(&self, many: u64) -> u64 {
        let next = |seed: u64| Some(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let seed = self.chance.fetch_update(SeqCst, SeqCst, next).unwrap();
        (seed >> 33) % many
    }

    async fn step<T>(
        &self,
        step: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        if !self.faulty.load(SeqCst) {
            return step.await;
        }
        let unavailable = || StoreError::Unavailable("the test says so".to_owned());
        let fate = self.one_of(8);
        if fate < 4 {
            sleep(Duration::from_millis(1 + self.one_of(20))).await;
        }
        match fate {
            0 => Err(unavailable()),
            1 => step.await.and(Err(unavailable())),
            _ => step.await,
        }
    }
}

#[async_trait]
impl DirectoryOver for Unsteady {
    fn directory(&self) -> &dyn Directory {
        &*self.inner
    }

    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError> {
        let idle = new.idle * RECORDS_OUTLIVE;
        let new = NewSession { idle, ..new };
        self.step(self.inner.create(new)).await
    }

    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError> {
        self.step(self.inner.lookup(session)).await
    }

    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError> {
        self.until_released(session).await;
        self.step(self.inner.claim(session, node)).await
    }

    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError> {
        self.step(self.inner.claim_on_evidence(session, node, evidence))
            .await
    }

    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError> {
        if self.disowns.load(SeqCst) {
            return Ok(vec![false; sessions.len()]);
        }
        self.step(self.inner.held(sessions)).await
    }

    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        self.until_released(session).await;
        let idle = idle * RECORDS_OUTLIVE;
        self.step(self.inner.save(session, epoch, record, idle))
            .await
    }

    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        self.step(self.inner.release(session, epoch, record, idle))
            .await
    }

    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError> {
        self.step(self.inner.remove(session, epoch)).await
    }
}

pub fn unsteady(config: SessionConfig) -> (Bench, Arc<Unsteady>) {
    let mut store = MemoryStore::new(StreamSettings::default()).into_store();
    let unsteady = Arc::new(Unsteady {
        inner: store.directory.clone(),
        faulty: AtomicBool::new(false),
        chance: AtomicU64::new(1),
        held: watch::Sender::new(None),
        waiting: watch::Sender::new(0),
        disowns: AtomicBool::new(false),
    });
    store.directory = Arc::new(Over(unsteady.clone()));
    (Bench::on(store, config), unsteady)
}
