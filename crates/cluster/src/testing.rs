//! A gateway for tests that send no messages.

use async_trait::async_trait;
use shoal_ports::{
    AdoptCall, Delivered, EventStream, GatewayError, OpenSession, Opened, Post, SessionGateway,
    SessionId, SessionRef, SessionTasks, TaskRequest,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId};

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

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        Err(unreachable())
    }

    async fn adopt(&self, _: &SessionRef, _: AdoptCall) -> Result<Task, GatewayError> {
        Err(unreachable())
    }

    async fn ask_task(&self, _: &SessionRef, _: TaskRequest) -> Result<Task, GatewayError> {
        Err(unreachable())
    }

    async fn until_over(
        &self,
        _: &SessionRef,
        _: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        Err(unreachable())
    }

    async fn tasks_of(&self, _: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        Err(unreachable())
    }
}
