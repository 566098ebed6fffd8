//! Messages that change more of their session than which calls run: its actor carries them out, one at a time.

use std::sync::Arc;

use shoal_ports::{Delivered, GatewayError, Grant, SessionRef};
use shoal_protocol::{Message, Method, Request};

use super::super::Node;
use super::{ATTEMPTS, input};
use crate::actor::{Changed, SessionMsg, Unsent};
use crate::live::{Closed, LiveSession};

impl Node {
    /// Has the actor of a session, which may have to be woken for it, carry out what its client sends. What it has taken it
    /// carries out, also when whoever asked for it has gone.
    pub(super) async fn ask_for_change<T>(
        self: &Arc<Self>,
        to: &SessionRef,
        message: impl Fn(Changed<T>) -> SessionMsg,
    ) -> Result<T, GatewayError> {
        for _ in 0..ATTEMPTS {
            let live = self.find(to).await?;
            match live
                .ask(self.config.limits.messages_per_session, &message)
                .await
            {
                Ok(Ok(changed)) => return changed,
                Ok(Err(Closed)) => Box::pin(self.forget_dead(&live)).await,
                Err(Unsent::Full) => return Err(self.too_many_changes()),
                Err(Unsent::Dead) => {
                    let died = "the session's actor died over the message";
                    return Err(GatewayError::Internal(died.to_owned()));
                }
            }
        }
        Err(self.being_moved())
    }

    fn too_many_changes(&self) -> GatewayError {
        GatewayError::Overloaded {
            reason: format!(
                "{} changes of the session wait to be carried out, which is its limit; wait for their answers first",
                self.config.limits.messages_per_session
            ),
            retry_after: self.config.retry_after,
        }
    }

    /// Applies a message and carries out what follows from it. In the session's actor.
    pub(crate) async fn change(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        message: Message,
        repeated: bool,
        grant: Option<&Arc<Grant>>,
    ) -> Result<Result<Delivered, GatewayError>, Closed> {
        let effect = live.apply(input(message))?;
        let settled = match self.initialized_again(live, effect, repeated).await {
            Ok(Some(effect)) => self.settle(live, effect, grant).await,
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        Ok(match settled {
            Ok(Some(response)) => self.respond(live, response).await,
            Ok(None) => Ok(Delivered::Accepted),
            Err(error) => Err(error),
        })
    }
}

/// Whether a message changes more of its session than which calls run: the record, or subscriptions.
pub(super) fn changes(message: &Message) -> bool {
    matches!(
        message,
        Message::Request(Request {
            method: Method::Initialize
                | Method::SetLevel
                | Method::ResourcesSubscribe
                | Method::ResourcesUnsubscribe,
            ..
        })
    )
}
