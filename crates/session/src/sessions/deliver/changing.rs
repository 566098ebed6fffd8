//! Messages that change more of their session than which calls run: no half of what follows from one is left.

use std::sync::Arc;

use shoal_ports::{Delivered, DeliveryId, GatewayError, SessionRef};
use shoal_protocol::{Message, Method, Request};

use super::super::Node;
use super::{ATTEMPTS, input};
use crate::here::in_task;
use crate::live::{LiveSession, Unapplied};

impl Node {
    /// Does what changes more than calls: one at a time in a session, and in a task of its own, so that no half of it is
    /// left when whoever asked for it has gone. Nobody waits for a lock of the node's in there: those who hold one
    /// wait for the session's turn.
    pub(super) async fn in_turn<T, F>(
        self: &Arc<Self>,
        to: &SessionRef,
        work: impl Fn(Arc<Self>, Arc<LiveSession>) -> F,
    ) -> Result<T, GatewayError>
    where
        T: Send + 'static,
        F: Future<Output = Result<Result<T, GatewayError>, Unapplied>> + Send + 'static,
    {
        for _ in 0..ATTEMPTS {
            let live = self.find(to).await?;
            // Waited for here and not in the task: there is one such task a session, however many have gone.
            let turn = live.changing.clone().lock_owned().await;
            let working = work(self.clone(), live.clone());
            let worked = in_task(async move {
                let worked = working.await;
                drop(turn);
                Ok(worked)
            });
            match worked.await? {
                Ok(done) => return done,
                Err(Unapplied::Full) => return Err(self.mailbox_full()),
                Err(Unapplied::Closed) => Box::pin(self.forget_dead(&live)).await,
            }
        }
        Err(self.being_moved())
    }

    pub(super) async fn deliver_change(
        self: &Arc<Self>,
        to: &SessionRef,
        message: Message,
        delivery: DeliveryId,
        repeated: bool,
    ) -> Result<Option<Delivered>, GatewayError> {
        let trace = &to.trace;
        self.in_turn(to, |node, live| {
            let (input, trace) = (input(message.clone(), repeated), trace.clone());
            async move {
                let effect = live.apply(input, &node.config).await?;
                let effect = match node.initialized_again(&live, effect, repeated).await {
                    Ok(Some(effect)) => effect,
                    Ok(None) => return Ok(Ok(Some(Delivered::Accepted))),
                    Err(error) => return Ok(Err(error)),
                };
                let carried = node.carry_out(&live, effect, (delivery, repeated), trace.as_ref());
                Ok(carried.await)
            }
        })
        .await
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
