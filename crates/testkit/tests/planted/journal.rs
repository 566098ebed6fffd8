use std::sync::Arc;

use async_trait::async_trait;
use shoal_ports::{
    Begin, Begun, Binding, CallId, DeliveryId, Epoch, Journal, LogError, RunningStream, SessionId,
    StoreError,
};
use shoal_protocol::EventId;

/// A journal that stores every entry, but does not find running calls.
pub(crate) struct Forgetful(pub(crate) Arc<dyn Journal>);

#[async_trait]
impl Journal for Forgetful {
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError> {
        self.0.begin(session, epoch, begin).await
    }

    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError> {
        self.0.rebind(session, epoch, call, binding).await
    }

    async fn running(&self, _: &SessionId, _: Epoch) -> Result<Vec<RunningStream>, LogError> {
        Ok(Vec::new())
    }

    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError> {
        self.0.delivered(session, delivery).await
    }
}
