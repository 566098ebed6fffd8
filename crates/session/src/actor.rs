//! A session's actor makes durable changes in order, even if their callers leave.
//!
//! The actor exists from the first such change until the last one is done ([`SessionActorSlot`]). Other
//! inputs need no actor ([`LiveSession::apply`]). While the actor waits for a backend or a stream,
//! it still writes the session's record ([`record`]). It must not wait for the node's session
//! locks, because their holders wait for the actor.

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

pub(crate) use slot::{SessionActorSlot, UnsentMessage};

use crate::live::{Closed, LiveSession};
use crate::sessions::{Alone, BegunBatch, LeaveKind, Node};
use record::Write;

pub(crate) struct SessionActor;

pub(crate) enum SessionMsg {
    Change {
        message: Message,
        repeated: bool,
        grant: Option<Arc<Grant>>,
        reply: Changed<Delivered>,
    },
    /// The reply is `None` if an earlier delivery of the batch was admitted.
    Batch {
        members: Vec<Result<Message, InvalidMessage>>,
        delivery: DeliveryId,
        repeated: bool,
        grant: Option<Arc<Grant>>,
        reply: Changed<Option<BegunBatch>>,
    },
    Renew(SubscriptionRenewal),
    /// The actor holds the session's lock `alone` until the session has left.
    Leave {
        how: LeaveKind,
        alone: Option<Alone>,
        reply: oneshot::Sender<bool>,
    },
    Write,
}

pub(crate) type Changed<T> = oneshot::Sender<Result<Result<T, GatewayError>, Closed>>;

pub(crate) struct SubscriptionRenewal {
    pub(crate) missing: BTreeSet<String>,
    /// `None` before the first attempt.
    pub(crate) pauses: Option<Backoff>,
}

pub(crate) struct ActorWork {
    node: Arc<Node>,
    live: Arc<LiveSession>,
    writes: mpsc::UnboundedReceiver<Write>,
    /// After a release, another node may write the record.
    released: bool,
}

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = ActorWork;
    type Arguments = ActorWork;

    async fn pre_start(
        &self,
        _myself: ActorRef<SessionMsg>,
        work: ActorWork,
    ) -> Result<ActorWork, ActorProcessingErr> {
        Ok(work)
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionMsg>,
        message: SessionMsg,
        work: &mut ActorWork,
    ) -> Result<(), ActorProcessingErr> {
        // If this returned an error or panicked, the actor would drop its waiting messages. After a panic, this node
        // forgets the session instead.
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

impl ActorWork {
    async fn handle(&mut self, message: SessionMsg) {
        let (node, live) = (self.node.clone(), self.live.clone());
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

    /// Runs `work` and writes the record meanwhile: `work` may wait for such a write.
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
