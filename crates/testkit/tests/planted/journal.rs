//! A journal that forgets.

use std::sync::Arc;

use async_trait::async_trait;
use shoal_ports::{
    Begin, Begun, Binding, CallId, DeliveryId, Epoch, Journal, LogError, RunningStream, SessionId,
    StoreError,
};
use shoal_protocol::EventId;

/// What it forgets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forgets {
    /// Which deliveries brought the calls.
    Deliveries,
    /// Which calls run.
    Calls,
}

/// A journal that keeps everything, and does not find some of it.
pub(crate) struct Forgetful {
    pub(crate) inner: Arc<dyn Journal>,
    pub(crate) forgets: Forgets,
}

#[async_trait]
impl Journal for Forgetful {
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        mut begin: Begin,
    ) -> Result<Begun, LogError> {
        // The store looks for the delivery too.
        if self.forgets == Forgets::Deliveries {
            begin.delivery = DeliveryId::generate();
        }
        self.inner.begin(session, epoch, begin).await
    }

    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError> {
        self.inner.rebind(session, epoch, call, binding).await
    }

    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError> {
        match self.forgets {
            Forgets::Calls => Ok(Vec::new()),
            Forgets::Deliveries => self.inner.running(session, epoch).await,
        }
    }

    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError> {
        match self.forgets {
            Forgets::Calls => self.inner.delivered(session, delivery).await,
            Forgets::Deliveries => Ok(None),
        }
    }
}
