//! Applies messages that change a session's record or subscriptions.

use std::sync::Arc;

use shoal_ports::{CallFailure, Delivered, GatewayError, Grant, SessionRef, SettledFacts};
use shoal_protocol::{Message, Method, Request, error_response};

use super::super::Node;
use super::{ATTEMPTS, input};
use crate::actor::{Changed, SessionMsg, UnsentMessage};
use crate::live::{Closed, LiveSession};
use crate::state::{Came, Effect, capability_of, has_capability};

impl Node {
    /// The actor completes the change even if the caller leaves.
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
                Err(UnsentMessage::Full) => return Err(self.too_many_changes()),
                Err(UnsentMessage::Dead) => {
                    let died = "the session's actor failed on the message";
                    return Err(GatewayError::Internal(died.to_owned()));
                }
            }
        }
        Err(self.being_moved())
    }

    fn too_many_changes(&self) -> GatewayError {
        GatewayError::Overloaded {
            reason: format!(
                "{} changes of the session are waiting, which is its limit; wait for their answers first",
                self.config.limits.messages_per_session
            ),
            retry_after: self.config.calls.retry_after.get(),
        }
    }

    /// Refuses a request whose answer depends on facts about the server that this node does not know yet.
    pub(super) async fn apply_knowing(
        &self,
        live: &LiveSession,
        message: Message,
        came: Came,
    ) -> Result<Effect, Closed> {
        if let Message::Request(request) = &message
            && let Err(why) = self.knows_enough(&request.method).await
        {
            let refusal = error_response(&request.id, &why.to_rpc());
            return Ok(Effect::Respond(refusal));
        }
        live.apply(input(message, came))
    }

    /// Waits until this node knows whether the server supports a method. Fails if this node does
    /// not know in time.
    pub(crate) async fn knows_enough(&self, method: &Method) -> Result<(), CallFailure> {
        let capability = match method {
            Method::Initialize => None,
            _ => match capability_of(method) {
                Some(capability) => Some(capability),
                None => return Ok(()),
            },
        };
        let SettledFacts { facts, lacks } = self.driver.dispatcher.settled_facts().await?;
        match (capability, lacks) {
            (Some(capability), Some(why)) if !has_capability(&facts, capability) => Err(why),
            _ => Ok(()),
        }
    }

    pub(crate) fn not_ready(&self, why: CallFailure) -> GatewayError {
        let retry_after = why
            .retry_after()
            .unwrap_or(self.config.calls.retry_after.get());
        let reason = match why {
            CallFailure::NotReady { reason, .. } => reason,
            why => why.to_string(),
        };
        GatewayError::Unavailable {
            reason,
            retry_after,
        }
    }

    /// Runs in the session's actor.
    pub(crate) async fn change(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        message: Message,
        repeated: bool,
        grant: Option<&Arc<Grant>>,
    ) -> Result<Result<Delivered, GatewayError>, Closed> {
        let effect = self.apply_knowing(live, message, Came::anew()).await?;
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
