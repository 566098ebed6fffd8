use std::sync::Arc;

use parking_lot::Mutex;
use ractor::{ActorRef, ActorRuntime};
use tokio::sync::{mpsc, oneshot};

use super::record::Write;
use super::{ActorWork, SessionActor, SessionMsg};
use crate::live::LiveSession;

#[derive(Default)]
pub(crate) struct SessionActorSlot(Mutex<Option<Running>>);

struct Running {
    actor: ActorRef<SessionMsg>,
    writes: mpsc::UnboundedSender<Write>,
    due: usize,
}

#[derive(Debug)]
pub(crate) enum UnsentMessage {
    Full,
    Dead,
}

impl SessionActorSlot {
    pub(crate) fn due(&self) -> usize {
        self.0.lock().as_ref().map_or(0, |running| running.due)
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.lock().is_some()
    }

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
    /// Returns the actor's reply, unless more than `most` messages wait. The actor processes the
    /// message even if the caller leaves. Call within a runtime.
    pub(crate) async fn ask<T>(
        self: &Arc<Self>,
        most: usize,
        message: impl FnOnce(oneshot::Sender<T>) -> SessionMsg,
    ) -> Result<T, UnsentMessage> {
        let (reply, replied) = oneshot::channel();
        self.send(most, message(reply), None)?;
        replied.await.map_err(|_| UnsentMessage::Dead)
    }

    pub(crate) fn tell(self: &Arc<Self>, message: SessionMsg) {
        let _ = self.send(usize::MAX, message, None);
    }

    pub(super) async fn write<T>(
        self: &Arc<Self>,
        write: impl FnOnce(oneshot::Sender<T>) -> Write,
    ) -> Result<T, UnsentMessage> {
        let (reply, replied) = oneshot::channel();
        self.send(usize::MAX, SessionMsg::Write, Some(write(reply)))?;
        replied.await.map_err(|_| UnsentMessage::Dead)
    }

    fn send(
        self: &Arc<Self>,
        most: usize,
        message: SessionMsg,
        write: Option<Write>,
    ) -> Result<(), UnsentMessage> {
        let mut slot = self.actor.0.lock();
        if slot.as_ref().is_some_and(|running| running.due > most) {
            return Err(UnsentMessage::Full);
        }
        let running = match &mut *slot {
            Some(running) => running,
            none => none.insert(self.start().ok_or(UnsentMessage::Dead)?),
        };
        let written = write.is_none_or(|write| running.writes.send(write).is_ok());
        if written && running.actor.cast(message).is_ok() {
            running.due += 1;
            return Ok(());
        }
        *slot = None;
        Err(UnsentMessage::Dead)
    }

    fn start(self: &Arc<Self>) -> Option<Running> {
        let (writes, written) = mpsc::unbounded_channel();
        let work = ActorWork {
            node: self.node.upgrade()?,
            live: self.clone(),
            writes: written,
            released: false,
        };
        // Fails only for a name in use. This actor has no name.
        let (actor, _) = ActorRuntime::spawn_instant(None, SessionActor, work).ok()?;
        Some(Running {
            actor,
            writes,
            due: 0,
        })
    }
}
