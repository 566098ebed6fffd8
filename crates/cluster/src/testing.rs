//! A gateway for tests and simulations that send no messages.

use async_trait::async_trait;
use shoal_ports::{
    Delivered, EventStream, GatewayError, OpenSession, Opened, Post, SessionGateway, SessionRef,
};
use shoal_protocol::EventId;

pub(crate) struct Nowhere;

fn unreachable() -> GatewayError {
    GatewayError::Unreachable {
        reason: "nowhere".to_owned(),
    }
}

#[async_trait]
impl SessionGateway for Nowhere {
    async fn open(&self, _: OpenSession) -> Result<Opened, GatewayError> {
        Err(unreachable())
    }

    async fn deliver(&self, _: &SessionRef, _: Post) -> Result<Delivered, GatewayError> {
        Err(unreachable())
    }

    async fn listen(
        &self,
        _: &SessionRef,
        _: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        Err(unreachable())
    }

    async fn close(&self, _: &SessionRef) -> Result<(), GatewayError> {
        Err(unreachable())
    }
}
