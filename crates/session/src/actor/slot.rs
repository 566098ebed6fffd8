//! Where a session's actor is, while there is one.

use std::sync::Arc;

use parking_lot::Mutex;
use ractor::{ActorRef, ActorRuntime};
use tokio::sync::{mpsc, oneshot};

use super::record::Write;
use super::{SessionActor, SessionMsg, Work};
use crate::live::LiveSession;

/// A session's actor, from the first message to the last.
#[derive(Default)]
pub(crate) struct ActorSlot(Mutex<Option<Running>>);

struct Running {
    actor: ActorRef<SessionMsg>,
    writes: mpsc::UnboundedSender<Write>,
    /// Messages that it has yet to do, the one that it is doing included.
    due: usize,
}

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum Unsent {
    /// Too many messages wait.
    Full,
    /// The node is gone, or the actor has panicked over the message.
    Dead,
}

impl ActorSlot {
    /// Messages that the actor has yet to do.
    pub(crate) fn due(&self) -> usize {
        self.0.lock().as_ref().map_or(0, |running| running.due)
    }

    /// Whether there is an actor.
    pub(crate) fn is_there(&self) -> bool {
        self.0.lock().is_some()
    }

    /// The actor has done a message; whether that was all, and it goes. Who comes after this finds none.
    pub(super) fn done(&self) -> bool {
        let mut slot = self.0.lock();
        let Some(running) = &mut *slot else {
            return true;
        };
        running.due -= 1;
        let all = running.due == 0;
        if all {
            *slot = None;
        }
        all
    }
}

impl LiveSession {
    /// Asks the session's actor for something, unless more messages than these wait for it, besides what it is doing. It is done
    /// whether or not this is waited for. To be called in a runtime.
    pub(crate) async fn ask<T>(
        self: &Arc<Self>,
        most: usize,
        message: impl FnOnce(oneshot::Sender<T>) -> SessionMsg,
    ) -> Result<T, Unsent> {
        let (reply, replied) = oneshot::channel();
        self.send(most, message(reply), None)?;
        replied.await.map_err(|_| Unsent::Dead)
    }

    /// Tells the session's actor something of the node's own.
    pub(crate) fn tell(self: &Arc<Self>, message: SessionMsg) {
        // A node that is gone has nobody to tell.
        let _ = self.send(usize::MAX, message, None);
    }

    /// Has the actor write something, also while it does something else.
    pub(super) async fn write<T>(
        self: &Arc<Self>,
        write: impl FnOnce(oneshot::Sender<T>) -> Write,
    ) -> Result<T, Unsent> {
        let (reply, replied) = oneshot::channel();
        self.send(usize::MAX, SessionMsg::Write, Some(write(reply)))?;
        replied.await.map_err(|_| Unsent::Dead)
    }

    fn send(
        self: &Arc<Self>,
        most: usize,
        message: SessionMsg,
        write: Option<Write>,
    ) -> Result<(), Unsent> {
        let mut slot = self.actor.0.lock();
        if slot.as_ref().is_some_and(|running| running.due > most) {
            return Err(Unsent::Full);
        }
        let running = match &mut *slot {
            Some(running) => running,
            none => none.insert(self.start().ok_or(Unsent::Dead)?),
        };
        let written = write.is_none_or(|write| running.writes.send(write).is_ok());
        if written && running.actor.cast(message).is_ok() {
            running.due += 1;
            return Ok(());
        }
        // The runtime has ended it.
        *slot = None;
        Err(Unsent::Dead)
    }

    fn start(self: &Arc<Self>) -> Option<Running> {
        let (writes, written) = mpsc::unbounded_channel();
        let work = Work {
            node: self.node.upgrade()?,
            live: self.clone(),
            writes: written,
            released: false,
        };
        // Only a name that is taken could keep it from being spawned, and it has none.
        let (actor, _) = ActorRuntime::spawn_instant(None, SessionActor, work).ok()?;
        Some(Running {
            actor,
            writes,
            due: 0,
        })
    }
}
