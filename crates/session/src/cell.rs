//! Actors that are there only while several requests come to their sessions at once.
//!
//! An actor takes some 7 KiB, most of it empty mailboxes, and the way through a mailbox and back is longer than what is
//! done for a request. A session that nobody uses is passivated as a whole, but not while a client listens to it. So a
//! session begins without an actor; the first request that comes while another one runs gets it one, and a while after
//! the last ([`SessionConfig::doze_after`](crate::SessionConfig::doze_after)) what the actor knew is kept here,
//! some hundred bytes. Nobody else sees a difference: only one holds the [`SessionCore`] at a time, and messages are handled
//! once and in their order.

mod beat;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use ractor::{ActorRef, ActorRuntime};

use crate::actor::{ActorMsg, SessionActor, SessionCore, SessionMsg, Shared};

pub(crate) use beat::{Up, beat};

/// Where a session's state is: with an actor, or here.
pub(crate) struct SessionCell {
    place: Mutex<Place>,
    up: Arc<Up>,
}

struct Place {
    slot: Slot,
    /// Whether it is in the list of those that are up.
    listed: bool,
}

enum Slot {
    Up(RunningActor),
    Asleep(Box<SessionCore>),
    /// The session is at its end here, or has panicked.
    Gone,
}

/// The actor of a session that is up.
struct RunningActor {
    actor: ActorRef<ActorMsg>,
    shared: Arc<Shared>,
    /// How many messages it has been sent.
    sent: u64,
    /// How many they were at the last beat.
    sent_before: u64,
}

impl SessionCell {
    /// A session that has not been asked for anything. Its actor will be listed in `up`.
    pub(crate) fn new(core: Box<SessionCore>, up: Arc<Up>) -> Arc<Self> {
        let place = Mutex::new(Place {
            slot: Slot::Asleep(core),
            listed: false,
        });
        Arc::new(Self { place, up })
    }

    /// Tells the session something; whether there is somebody to handle it.
    ///
    /// Without an actor, a request beside another one that runs gets the session one, and anything else is handled at
    /// once. To be called in a runtime.
    pub(crate) fn send(self: &Arc<Self>, message: SessionMsg) -> bool {
        let mut place = self.place.lock();
        let Place { slot, listed } = &mut *place;
        if let Slot::Asleep(core) = slot {
            // Whoever asks for one thing at a time needs no mailbox.
            if !message.is_request() || core.shared().in_flight() == 0 {
                let handled = handle(core, message);
                if !handled {
                    *slot = Slot::Gone;
                }
                return handled;
            }
            slot.start_actor();
            if !std::mem::replace(listed, true) {
                self.up.add(self.clone());
            }
        }
        match slot {
            Slot::Up(up) => {
                up.sent += 1;
                up.actor.cast(ActorMsg::Session(message)).is_ok()
            }
            Slot::Asleep(_) | Slot::Gone => false,
        }
    }

    /// A beat has passed: an actor that was sent nothing since the last one, and has nothing to do, is asked to go.
    /// Whether there still is one.
    fn beat(self: &Arc<Self>) -> bool {
        let mut place = self.place.lock();
        let there = match &mut place.slot {
            Slot::Up(up) if up.sent != up.sent_before => {
                up.sent_before = up.sent;
                true
            }
            Slot::Up(up) if up.shared.in_flight() > 0 || up.doze(self.clone()) => true,
            Slot::Asleep(_) => false,
            // Or its actor has panicked.
            gone @ (Slot::Up(_) | Slot::Gone) => {
                *gone = Slot::Gone;
                false
            }
        };
        place.listed = there;
        there
    }

    /// Takes what the actor knows from it, unless it was sent something besides these messages; whether it did.
    pub(crate) fn take_back(&self, core: &mut Option<Box<SessionCore>>, after: u64) -> bool {
        let mut place = self.place.lock();
        let last = matches!(&place.slot, Slot::Up(up) if up.sent == after);
        match core.take_if(|_| last) {
            Some(core) => {
                place.slot = Slot::Asleep(core);
                true
            }
            None => false,
        }
    }

    /// Whether there is an actor.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.place.lock().slot, Slot::Up(_))
    }

    /// Ends the session here: nothing is handled any more.
    pub(crate) fn stop(&self) {
        let slot = std::mem::replace(&mut self.place.lock().slot, Slot::Gone);
        if let Slot::Up(up) = slot {
            up.actor.stop(None);
        }
    }
}

impl Slot {
    fn start_actor(&mut self) {
        // Only a name that is taken could keep an actor from being spawned, and it has none.
        if let Self::Asleep(core) = std::mem::replace(self, Self::Gone) {
            let shared = core.shared().clone();
            if let Ok((actor, _)) = ActorRuntime::spawn_instant(None, SessionActor, core) {
                *self = Self::Up(RunningActor {
                    actor,
                    shared,
                    sent: 0,
                    sent_before: 0,
                });
            }
        }
    }
}

impl RunningActor {
    fn doze(&self, cell: Arc<SessionCell>) -> bool {
        let after = self.sent;
        self.actor.cast(ActorMsg::Doze { cell, after }).is_ok()
    }
}

/// As with an actor, a panic costs no more than the session, which is rebuilt from its record; `false` for one.
fn handle(core: &mut SessionCore, message: SessionMsg) -> bool {
    catch_unwind(AssertUnwindSafe(|| core.handle(message))).is_ok()
}

#[cfg(test)]
mod tests;
