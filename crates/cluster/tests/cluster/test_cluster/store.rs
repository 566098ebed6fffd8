use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use shoal_ports::contract::Intercepted;
use shoal_ports::{
    Claim, ClusterBus, ClusterEvent, ClusterSubscription, Directory, Epoch, Evidence, NewSession,
    NodeId, Placement, Renewal, SessionId, Store, StoreError,
};

pub(crate) struct StoreAccess {
    inner: Store,
    away: AtomicBool,
    hangs: AtomicBool,
    lookups: AtomicUsize,
    waiting: AtomicUsize,
    most_waiting: AtomicUsize,
}

impl StoreAccess {
    pub(crate) fn new(inner: Store) -> Self {
        Self {
            inner,
            away: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            lookups: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            most_waiting: AtomicUsize::new(0),
        }
    }

    pub(crate) fn store(self: Arc<Self>) -> Store {
        let (inner, access) = (self.inner.membership.clone(), self.clone());
        let membership = Intercepted::new(inner, move |step| {
            let access = access.clone();
            async move {
                if step == "nodes" {
                    access.answers().await;
                }
                access.here().map(drop)
            }
        });
        Store {
            directory: self.clone(),
            membership: Arc::new(membership),
            bus: self.clone(),
            ..self.inner.clone()
        }
    }

    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    pub(crate) fn set_hanging(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::SeqCst);
    }

    pub(crate) fn most_lookups_at_once(&self) -> usize {
        self.most_waiting.load(Ordering::SeqCst)
    }

    async fn answers(&self) {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }

    fn here(&self) -> Result<&Store, StoreError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("cut off".to_owned()));
        }
        Ok(&self.inner)
    }
}

struct Waiting<'a>(&'a StoreAccess);

impl<'a> Waiting<'a> {
    fn new(access: &'a StoreAccess) -> Self {
        let now = access.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        access.most_waiting.fetch_max(now, Ordering::SeqCst);
        Self(access)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Directory for StoreAccess {
    async fn renew_lease(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError> {
        self.answers().await;
        self.here()?.directory.renew_lease(node, lease).await
    }

    async fn end_lease(&self, node: &NodeId) -> Result<(), StoreError> {
        self.here()?.directory.end_lease(node).await
    }

    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError> {
        self.here()?.directory.create(new).await
    }

    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let waiting = Waiting::new(self);
        self.answers().await;
        drop(waiting);
        self.here()?.directory.lookup(session).await
    }

    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError> {
        self.here()?.directory.claim(session, node).await
    }

    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError> {
        let directory = &self.here()?.directory;
        directory.claim_on_evidence(session, node, evidence).await
    }

    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError> {
        self.here()?.directory.held(sessions).await
    }

    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        let directory = &self.here()?.directory;
        directory.save(session, epoch, record, idle).await
    }

    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        let directory = &self.here()?.directory;
        directory.release(session, epoch, record, idle).await
    }

    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError> {
        self.here()?.directory.remove(session, epoch).await
    }

    async fn sweep(&self) -> Result<usize, StoreError> {
        self.here()?.directory.sweep().await
    }
}

#[async_trait]
impl ClusterBus for StoreAccess {
    async fn publish(&self, event: ClusterEvent) -> Result<(), StoreError> {
        self.here()?.bus.publish(event).await
    }

    fn subscribe(&self) -> ClusterSubscription {
        self.inner.bus.subscribe()
    }
}
