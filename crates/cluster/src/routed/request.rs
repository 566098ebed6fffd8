//! Requests to a session's owner that may be attempted several times.

use std::pin::Pin;

use shoal_ports::{Delivered, EventStream, GatewayError, Post, SessionGateway, SessionRef};
use shoal_protocol::EventId;

use super::retry_decision::Operation;

pub(crate) type Attempt<'a, T> = Pin<Box<dyn Future<Output = Result<T, GatewayError>> + Send + 'a>>;

pub(crate) trait GatewayRequest: Send + Sync {
    type Answer: Send;

    const OPERATION: Operation;

    /// `repeated` means that an earlier attempt may have been carried out.
    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        repeated: bool,
    ) -> Attempt<'a, Self::Answer>;

    /// Whether the request must not be carried out twice.
    fn takes_effect(&self) -> bool {
        false
    }

    /// Returns the answer if an earlier attempt was carried out.
    fn done(&self) -> Option<Self::Answer> {
        None
    }
}

pub(crate) struct Deliver(pub(crate) Post);

pub(crate) struct Listen(pub(crate) Option<EventId>);

pub(crate) struct Close;

impl GatewayRequest for Deliver {
    type Answer = Delivered;
    const OPERATION: Operation = Operation::Deliver;

    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        repeated: bool,
    ) -> Attempt<'a, Delivered> {
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
    ) -> Attempt<'a, EventStream> {
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
    ) -> Attempt<'a, ()> {
        gateway.close(to)
    }

    fn done(&self) -> Option<()> {
        Some(())
    }
}
