use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{
    Claim, Directory, Epoch, Evidence, NewSession, NodeId, Placement, SessionId, StoreError,
};
use tokio::task::yield_now;

use super::over::DirectoryOver;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Works,
    /// Acknowledged but not done.
    Lost,
    /// Not done, and the node is told so.
    Away,
    /// Not done, but the node is told that the outcome is unknown.
    Unconfirmed,
    /// Done, but the node is told that the outcome is unknown.
    Seen,
    Full,
}

pub struct Fated {
    pub inner: Arc<dyn Directory>,
    pub saves: Arc<Mutex<Fate>>,
}

impl Fated {
    fn ended(&self) -> Option<Result<(), StoreError>> {
        let told = || "the test says so".to_owned();
        let mut fate = self.saves.lock();
        match *fate {
            Fate::Works => None,
            Fate::Lost => Some(Ok(())),
            Fate::Away => Some(Err(StoreError::Away(told()))),
            Fate::Unconfirmed | Fate::Seen => {
                *fate = Fate::Seen;
                Some(Err(StoreError::Unavailable(told())))
            }
            Fate::Full => Some(Err(StoreError::Full("the test says so"))),
        }
    }
}

#[async_trait]
impl DirectoryOver for Fated {
    fn directory(&self) -> &dyn Directory {
        &*self.inner
    }

    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError> {
        yield_now().await;
        self.inner.create(new).await
    }

    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError> {
        yield_now().await;
        self.inner.lookup(session).await
    }

    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError> {
        yield_now().await;
        self.inner.claim(session, node).await
    }

    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError> {
        yield_now().await;
        self.inner.claim_on_evidence(session, node, evidence).await
    }

    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        if let Some(ended) = self.ended() {
            return ended;
        }
        yield_now().await;
        self.inner.save(session, epoch, record, idle).await
    }

    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        if let Some(ended) = self.ended() {
            return ended;
        }
        yield_now().await;
        self.inner.release(session, epoch, record, idle).await
    }

    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError> {
        yield_now().await;
        self.inner.remove(session, epoch).await
    }
}
