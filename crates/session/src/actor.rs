//! The actor of a session: feeds its state machine, one input at a time.
//!
//! `handle` never waits: effects run in the tasks that sent the input.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use shoal_ports::{ServerFacts, shown};
use shoal_protocol::{RawJson, RawObject, RequestId, Revision};
use tokio::sync::watch;

use crate::state::{CallSlot, Effect, Input, SessionState};

/// Characters of a client's name and version that operators see.
const LONGEST_CLIENT: usize = 96;

/// So many ended requests are kept for an actor that is told nothing else: each keeps what its call was.
const MOST_ENDED: usize = 16;

/// A session's actor.
pub(crate) struct SessionActor;

/// What the actor is told.
pub(crate) enum SessionMsg {
    /// Apply an input and report the effect.
    Apply(Input, RpcReplyPort<Reply>),
    /// Apply an input whose effect is known to be nothing to act on.
    Note(Input),
    /// Forget the requests that have ended.
    Tidy,
    /// Report the record, to be stored.
    Snapshot(RpcReplyPort<Bytes>),
    /// If nothing is going on, stop taking inputs and report the record.
    Passivate(RpcReplyPort<Option<Bytes>>),
    /// Stop taking inputs, whatever is going on, and report what runs.
    End(RpcReplyPort<Vec<Arc<CallSlot>>>),
}

/// The actor's answer to an input.
pub(crate) enum Reply {
    /// What follows.
    Effect(Effect),
    /// The actor takes no inputs any more; find the session anew.
    Closed,
}

/// The actor's state.
pub(crate) struct ActorState {
    session: SessionState,
    facts: watch::Receiver<Arc<ServerFacts>>,
    shared: Arc<Shared>,
    closed: bool,
}

/// What others may read without asking the actor.
#[derive(Default)]
pub(crate) struct Shared {
    /// Requests in flight, as the actor knows them.
    known: AtomicUsize,
    /// Those of them that have ended meanwhile.
    ended: Mutex<Vec<RequestId>>,
    /// The negotiated revision.
    pub(crate) revision: std::sync::OnceLock<Revision>,
    /// Name and version of the client, as operators see them.
    pub(crate) client: std::sync::OnceLock<Arc<str>>,
}

impl Shared {
    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        let ended = self.ended.lock();
        let known = self.known.load(Ordering::Relaxed);
        known.saturating_sub(ended.len())
    }

    /// Notes that a request has ended; true where the actor should be told so now.
    pub(crate) fn ended(&self, request: RequestId) -> bool {
        let mut ended = self.ended.lock();
        ended.push(request);
        ended.len() == MOST_ENDED
    }
}

/// What an actor starts from.
pub(crate) struct SessionArgs {
    pub(crate) session: SessionState,
    pub(crate) facts: watch::Receiver<Arc<ServerFacts>>,
    pub(crate) shared: Arc<Shared>,
}

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = ActorState;
    type Arguments = SessionArgs;

    async fn pre_start(
        &self,
        _myself: ActorRef<SessionMsg>,
        args: SessionArgs,
    ) -> Result<ActorState, ActorProcessingErr> {
        let SessionArgs {
            session,
            facts,
            shared,
        } = args;
        let mut state = ActorState {
            session,
            facts,
            shared,
            closed: false,
        };
        state.publish();
        Ok(state)
    }

    async fn handle(
        &self,
        _myself: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut ActorState,
    ) -> Result<(), ActorProcessingErr> {
        state.forget_ended();
        // A reply nobody waits for any more is no error, and an error here would lose the session.
        match message {
            SessionMsg::Apply(input, reply) => {
                let _ = reply.send(state.apply(input));
            }
            SessionMsg::Note(input) => {
                state.apply(input);
            }
            SessionMsg::Tidy => {}
            SessionMsg::Snapshot(reply) => {
                let _ = reply.send(state.session.record().to_bytes());
            }
            SessionMsg::Passivate(reply) => {
                let idle = !state.closed && state.session.is_idle();
                state.closed |= idle;
                let _ = reply.send(idle.then(|| state.session.record().to_bytes()));
            }
            SessionMsg::End(reply) => {
                state.closed = true;
                let _ = reply.send(state.session.slots());
            }
        }
        Ok(())
    }
}

impl ActorState {
    fn apply(&mut self, input: Input) -> Reply {
        if self.closed {
            return Reply::Closed;
        }
        let facts = self.facts.borrow().clone();
        let effect = self.session.apply(input, &facts);
        self.publish();
        Reply::Effect(effect)
    }

    fn forget_ended(&mut self) {
        // Under the lock, so that nobody counts one that has ended as in flight, or counts its end twice.
        let mut ended = self.shared.ended.lock();
        for request in ended.drain(..) {
            self.session.ended(&request);
        }
        let in_flight = self.session.in_flight();
        self.shared.known.store(in_flight, Ordering::Relaxed);
    }

    fn publish(&mut self) {
        let in_flight = self.session.in_flight();
        self.shared.known.store(in_flight, Ordering::Relaxed);
        if self.shared.revision.get().is_none()
            && let Some(revision) = self.session.revision()
        {
            let _ = self.shared.revision.set(revision);
            if let Some(client) = self.session.caller().client_info.as_ref() {
                let _ = self.shared.client.set(client_name(client));
            }
        }
    }
}

/// Name and version of a client.
fn client_name(info: &RawJson) -> Arc<str> {
    let info = RawObject::of(info).unwrap_or_default();
    let member = |name: &str| info.get(name).and_then(|value| value.string());
    let name = member("name").unwrap_or_default();
    let version = member("version").unwrap_or_default();
    shown(format!("{name} {version}").trim(), LONGEST_CLIENT).into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use shoal_protocol::RequestId;

    use super::{MOST_ENDED, Shared};

    #[test]
    fn what_has_ended_is_not_in_flight_and_the_actor_is_told_when_much_has() {
        let shared = Shared::default();
        shared.known.store(MOST_ENDED + 1, Ordering::Relaxed);
        for number in 1..=MOST_ENDED {
            let tell = shared.ended(RequestId::from_number(number as u64));
            assert_eq!(tell, number == MOST_ENDED, "{number}");
            assert_eq!(shared.in_flight(), MOST_ENDED + 1 - number);
        }
    }
}
