//! What can be asked of a session's owner, as often as it takes.

use std::pin::Pin;

use shoal_ports::{Delivered, EventStream, GatewayError, Post, SessionGateway, SessionRef};
use shoal_protocol::EventId;

use super::retry_decision::Operation;

/// The future of an attempt, as the gateway made it.
pub(crate) type Attempt<'a, T> = Pin<Box<dyn Future<Output = Result<T, GatewayError>> + Send + 'a>>;

/// Something to ask of a session's owner.
pub(crate) trait GatewayRequest: Send + Sync {
    /// What the owner answers.
    type Answer: Send;

    /// Which operation it is.
    const OPERATION: Operation;

    /// Asks; `repeated` if an attempt before may have been carried out.
    fn attempt<'a>(
        &'a self,
        gateway: &'a dyn SessionGateway,
        to: &'a SessionRef,
        repeated: bool,
    ) -> Attempt<'a, Self::Answer>;

    /// Whether it asks for what must not be done twice.
    fn takes_effect(&self) -> bool {
        false
    }

    /// The answer to what has been done already.
    fn done(&self) -> Option<Self::Answer> {
        None
    }
}

/// Something posted.
pub(crate) struct Deliver(pub(crate) Post);

/// A stream to read.
pub(crate) struct Listen(pub(crate) Option<EventId>);

/// The session's end.
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
