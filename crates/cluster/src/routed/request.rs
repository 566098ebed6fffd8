//! Requests to a session's owner that may be attempted several times.

use std::pin::Pin;

use shoal_ports::{
    AdoptCall, Delivered, EventStream, GatewayError, Post, SessionGateway, SessionRef,
    SessionTasks, TaskMark, TaskRequest,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId};

use super::retry_decision::Operation;

pub(crate) type GatewayAttempt<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, GatewayError>> + Send + 'a>>;

pub(crate) trait GatewayRequest: Send + Sync {
    type Answer: Send;

    const OPERATION: Operation;

    /// `repeated` means that an earlier attempt may have been carried out.
    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        repeated: bool,
    ) -> GatewayAttempt<'a, Self::Answer>;

    fn takes_effect(&self) -> bool {
        false
    }

    /// Answers a request that an earlier attempt carried out.
    fn done(&self) -> Option<Self::Answer> {
        None
    }
}

pub(crate) struct Deliver(pub(crate) Post);

pub(crate) struct Listen(pub(crate) Option<EventId>);

pub(crate) struct Close;

pub(crate) struct Adopt(pub(crate) AdoptCall);

pub(crate) struct AskTask(pub(crate) TaskRequest);

pub(crate) struct WatchTask(pub(crate) TaskMark);

pub(crate) struct TasksOf;

/// `None` stands for all current calls.
pub(crate) struct UntilOver(pub(crate) Option<Vec<RequestId>>);

impl GatewayRequest for Deliver {
    type Answer = Delivered;
    const OPERATION: Operation = Operation::Deliver;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        repeated: bool,
    ) -> GatewayAttempt<'a, Delivered> {
        let mut post = self.0.clone();
        post.repeated |= repeated;
        gateway.deliver(to, post)
    }

    fn takes_effect(&self) -> bool {
        self.0.takes_effect()
    }
}

impl GatewayRequest for Listen {
    type Answer = EventStream;
    const OPERATION: Operation = Operation::Listen;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        _: bool,
    ) -> GatewayAttempt<'a, EventStream> {
        gateway.listen(to, self.0)
    }
}

impl GatewayRequest for Close {
    type Answer = ();
    const OPERATION: Operation = Operation::Close;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        _: bool,
    ) -> GatewayAttempt<'a, ()> {
        gateway.close(to)
    }

    fn done(&self) -> Option<()> {
        Some(())
    }
}

impl GatewayRequest for Adopt {
    type Answer = Task;
    const OPERATION: Operation = Operation::Adopt;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        repeated: bool,
    ) -> GatewayAttempt<'a, Task> {
        let mut call = self.0.clone();
        call.repeated |= repeated;
        gateway.adopt(to, call)
    }

    /// A caller that repeats the request knows itself that an earlier attempt may have adopted the call.
    fn takes_effect(&self) -> bool {
        !self.0.repeated
    }
}

impl GatewayRequest for AskTask {
    type Answer = Task;
    const OPERATION: Operation = Operation::Ask;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        _: bool,
    ) -> GatewayAttempt<'a, Task> {
        gateway.ask_task(to, self.0.clone())
    }
}

impl GatewayRequest for WatchTask {
    type Answer = Task;
    const OPERATION: Operation = Operation::Watch;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        _: bool,
    ) -> GatewayAttempt<'a, Task> {
        gateway.ask_task(to, TaskRequest::Watch { seen: self.0 })
    }
}

impl GatewayRequest for TasksOf {
    type Answer = Option<SessionTasks>;
    const OPERATION: Operation = Operation::Ask;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        _: bool,
    ) -> GatewayAttempt<'a, Option<SessionTasks>> {
        gateway.tasks_of(to)
    }
}

impl GatewayRequest for UntilOver {
    type Answer = ();
    const OPERATION: Operation = Operation::Watch;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        _: bool,
    ) -> GatewayAttempt<'a, ()> {
        gateway.until_over(to, self.0.as_deref())
    }
}
