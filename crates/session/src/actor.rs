//! The actor of a session: feeds its state machine, one input at a time.
//!
//! `handle` never waits: effects run in the tasks that sent the input. There is an actor only while several requests
//! come at once; see [`SessionCell`].

use std::sync::Arc;

use bytes::Bytes;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use shoal_ports::{ServerFacts, shown};
use shoal_protocol::{RawJson, RawObject, Revision};
use tokio::sync::watch;

use crate::cell::SessionCell;
use crate::live::MailboxPlace;
use crate::state::{Admitted, CallSlot, Effect, Input, SessionState};

/// Characters of a client's name and version that operators see.
const LONGEST_CLIENT: usize = 96;

/// A session's actor.
pub(crate) struct SessionActor;

/// What a session is told.
pub(crate) enum SessionMsg {
    /// Apply an input and report the effect. Its place is free once that is done, whoever waits for it.
    Apply(Input, Option<MailboxPlace>, RpcReplyPort<Reply>),
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

impl SessionMsg {
    /// Whether the client asks for something. All else is quickly done.
    pub(crate) fn is_request(&self) -> bool {
        matches!(
            self,
            Self::Apply(Input::Request(_) | Input::Repeated(_), ..)
        )
    }
}

/// What the actor is told.
pub(crate) enum ActorMsg {
    /// What the session is told.
    Session(SessionMsg),
    /// If no call runs and nothing comes after this, put the state to bed and go.
    Doze {
        cell: Arc<SessionCell>,
        /// How many messages the actor was sent before.
        after: u64,
    },
}

/// The session's answer to an input.
pub(crate) enum Reply {
    /// What follows.
    Effect(Effect),
    /// It takes no inputs any more; find the session anew.
    Closed,
}

/// All that an actor knows, which is handed from one to the next.
pub(crate) struct SessionCore {
    session: SessionState,
    facts: watch::Receiver<Arc<ServerFacts>>,
    shared: Arc<Shared>,
    closed: bool,
}

/// What others may read without asking the actor.
pub(crate) struct Shared {
    /// The requests in flight.
    admitted: Arc<Admitted>,
    /// The negotiated revision.
    pub(crate) revision: std::sync::OnceLock<Revision>,
    /// Name and version of the client, as operators see them.
    pub(crate) client: std::sync::OnceLock<Arc<str>>,
}

impl Shared {
    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.admitted.count()
    }

    /// Calls that are not over, their answers included.
    pub(crate) fn held(&self) -> usize {
        self.admitted.held()
    }
}

impl Actor for SessionActor {
    type Msg = ActorMsg;
    /// `None` once it has been put to bed; then nothing comes any more.
    type State = Option<Box<SessionCore>>;
    type Arguments = Box<SessionCore>;

    async fn pre_start(
        &self,
        _myself: ActorRef<ActorMsg>,
        core: Box<SessionCore>,
    ) -> Result<Option<Box<SessionCore>>, ActorProcessingErr> {
        Ok(Some(core))
    }

    async fn handle(
        &self,
        myself: ActorRef<ActorMsg>,
        message: ActorMsg,
        state: &mut Option<Box<SessionCore>>,
    ) -> Result<(), ActorProcessingErr> {
        let Some(core) = state else {
            return Ok(());
        };
        match message {
            ActorMsg::Session(message) => core.handle(message),
            ActorMsg::Doze { cell, after } => {
                if core.may_doze() && cell.take_back(state, after) {
                    myself.stop(None);
                }
            }
        }
        Ok(())
    }
}

impl SessionCore {
    pub(crate) fn new(
        session: SessionState,
        facts: watch::Receiver<Arc<ServerFacts>>,
    ) -> Box<Self> {
        let shared = Arc::new(Shared {
            admitted: session.admitted().clone(),
            revision: std::sync::OnceLock::new(),
            client: std::sync::OnceLock::new(),
        });
        let mut core = Box::new(Self {
            session,
            facts,
            shared,
            closed: false,
        });
        core.publish();
        core
    }

    /// What others may read of it.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Does what the session is told. Never waits.
    pub(crate) fn handle(&mut self, message: SessionMsg) {
        // A reply nobody waits for any more is no error, and an error here would lose the session.
        match message {
            SessionMsg::Apply(input, place, reply) => {
                let applied = self.apply(input);
                drop(place);
                let _ = reply.send(applied);
            }
            SessionMsg::Note(input) => {
                self.apply(input);
            }
            SessionMsg::Tidy => self.session.forget_ended(),
            SessionMsg::Snapshot(reply) => {
                self.session.forget_ended();
                let _ = reply.send(self.session.record().to_bytes());
            }
            SessionMsg::Passivate(reply) => {
                self.session.forget_ended();
                let idle = !self.closed && self.session.is_idle();
                self.closed |= idle;
                let _ = reply.send(idle.then(|| self.session.record().to_bytes()));
            }
            SessionMsg::End(reply) => {
                self.session.forget_ended();
                self.closed = true;
                let _ = reply.send(self.session.slots());
            }
        }
    }

    fn may_doze(&mut self) -> bool {
        self.session.forget_ended();
        self.shared.in_flight() == 0
    }

    fn apply(&mut self, input: Input) -> Reply {
        if self.closed {
            return Reply::Closed;
        }
        let facts = self.facts.borrow().clone();
        let effect = self.session.apply(input, &facts);
        self.publish();
        Reply::Effect(effect)
    }

    fn publish(&mut self) {
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
