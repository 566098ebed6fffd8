//! A session's actor. It makes durable changes in order, even if the caller leaves.
//!
//! The actor exists from the first such change to the last ([`ActorSlot`]). Other inputs are applied to the session's
//! state without it ([`LiveSession::apply`]). While the actor waits for a backend or a stream, it still writes the
//! record ([`record`]). It must not wait for the node's locks, because their holders wait for it.

pub(crate) mod record;
mod slot;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt as _;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use shoal_ports::{Backoff, Delivered, DeliveryId, GatewayError, Grant};
use shoal_protocol::{InvalidMessage, Message};
use tokio::sync::{mpsc, oneshot};

pub(crate) use slot::{ActorSlot, Unsent};

use crate::live::{Closed, LiveSession};
use crate::sessions::{Alone, Begun, Leave, Node};
use record::Write;

pub(crate) struct SessionActor;

pub(crate) enum SessionMsg {
    /// A message that changes the record or subscriptions.
    Change {
        message: Message,
        repeated: bool,
        grant: Option<Arc<Grant>>,
        reply: Changed<Delivered>,
    },
    /// A batch, to carry out except for its calls. The reply is `None` if an earlier delivery was admitted.
    Batch {
        members: Vec<Result<Message, InvalidMessage>>,
        delivery: DeliveryId,
        repeated: bool,
        grant: Option<Arc<Grant>>,
        reply: Changed<Option<Begun>>,
    },
    /// Asks the backends again for the session's subscriptions.
    Renew(Renewal),
    /// The session leaves this node. `alone` is held until it has left.
    Leave {
        how: Leave,
        alone: Option<Alone>,
        reply: oneshot::Sender<bool>,
    },
    Write,
}

pub(crate) type Changed<T> = oneshot::Sender<Result<Result<T, GatewayError>, Closed>>;

/// Subscriptions that the backends have not granted yet.
pub(crate) struct Renewal {
    pub(crate) missing: BTreeSet<String>,
    /// `None` for the first attempt.
    pub(crate) pauses: Option<Backoff>,
}

pub(crate) struct Work {
    node: Arc<Node>,
    live: Arc<LiveSession>,
    writes: mpsc::UnboundedReceiver<Write>,
    /// Whether this node may no longer write the record.
    released: bool,
}

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = Work;
    type Arguments = Work;

    async fn pre_start(
        &self,
        _myself: ActorRef<SessionMsg>,
        work: Work,
    ) -> Result<Work, ActorProcessingErr> {
        Ok(work)
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionMsg>,
        message: SessionMsg,
        work: &mut Work,
    ) -> Result<(), ActorProcessingErr> {
        // Returning an error would lose waiting messages. A panic drops the session, as one in its state does.
        let done = Box::pin(AssertUnwindSafe(work.handle(message)).catch_unwind());
        if done.await.is_err() {
            work.live.forget();
        }
        if work.live.actor.done() {
            myself.stop(None);
        }
        Ok(())
    }
}

impl Work {
    async fn handle(&mut self, message: SessionMsg) {
        let (node, live) = (self.node.clone(), self.live.clone());
        // A failed reply means that the caller has gone.
        match message {
            SessionMsg::Change {
                message,
                repeated,
                grant,
                reply,
            } => {
                let changed = self
                    .beside(node.change(&live, message, repeated, grant.as_ref()))
                    .await;
                let _ = reply.send(changed);
            }
            SessionMsg::Batch {
                members,
                delivery,
                repeated,
                grant,
                reply,
            } => {
                let begun = self
                    .beside(node.begin_batch(&live, members, (delivery, repeated), grant.as_ref()))
                    .await;
                let _ = reply.send(begun);
            }
            SessionMsg::Renew(renewal) => self.beside(node.renew(&live, renewal)).await,
            SessionMsg::Leave { how, alone, reply } => {
                let left = self.beside(node.carry_out_leave(&live, how)).await;
                drop(alone);
                let _ = reply.send(left);
            }
            SessionMsg::Write => {
                if let Ok(write) = self.writes.try_recv() {
                    self.write(write).await;
                }
            }
        }
    }

    /// Runs work while serving record writes, because those it waits for may wait for a write.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                Some(write) = self.writes.recv() => self.write(write).await,
                done = &mut work => return done,
            }
        }
    }
}
