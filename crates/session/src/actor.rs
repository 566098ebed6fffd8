//! The actor of a session: does to it whatever is durable, one thing at a time and in order, whether or not anybody
//! waits for it.
//!
//! It is there from the first such thing to the last ([`ActorSlot`]). What is applied to the session's state while it
//! works needs no actor ([`LiveSession::apply`]). It may wait long for a backend or a stream; the session's
//! record is stored, and calls keep what they keep, meanwhile ([`record`]). It waits for no lock of the node's: who holds
//! one waits for it.

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

/// A session's actor.
pub(crate) struct SessionActor;

/// What a session's actor is told.
pub(crate) enum SessionMsg {
    /// The client sends what changes more than which calls run, perhaps `repeated`.
    Change {
        message: Message,
        repeated: bool,
        grant: Option<Arc<Grant>>,
        reply: Changed<Delivered>,
    },
    /// The client sends a batch, of which all but the calls is done; nothing where an earlier delivery of it was admitted.
    Batch {
        members: Vec<Result<Message, InvalidMessage>>,
        delivery: DeliveryId,
        repeated: bool,
        grant: Option<Arc<Grant>>,
        reply: Changed<Option<Begun>>,
    },
    /// The backends are asked once more for what the session is subscribed to.
    Renew(Renewal),
    /// The session leaves this node; the node's lock is held until it has.
    Leave {
        how: Leave,
        alone: Option<Alone>,
        reply: oneshot::Sender<bool>,
    },
    /// There is something to write to the record.
    Write,
}

/// Whoever waits for a change, if anybody still does.
pub(crate) type Changed<T> = oneshot::Sender<Result<Result<T, GatewayError>, Closed>>;

/// Subscriptions that backends have yet to be asked for.
pub(crate) struct Renewal {
    pub(crate) missing: BTreeSet<String>,
    /// The pauses since the first time; `None` for that.
    pub(crate) pauses: Option<Backoff>,
}

/// What an actor works with.
pub(crate) struct Work {
    node: Arc<Node>,
    live: Arc<LiveSession>,
    writes: mpsc::UnboundedReceiver<Write>,
    /// The record is not this node's to write any more.
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
        // An error here would lose what waits. A panic costs the session, as one in its state does.
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
        // Nobody is left to tell where whoever asked has gone.
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

    /// Does something that may wait for others, who may wait for the record to be written: that is done in between.
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
