//! A session's state, with what applies inputs to it. It never waits; it lies under the lock of its session.

use std::sync::Arc;

use bytes::Bytes;
use shoal_ports::{ServerFacts, shown};
use shoal_protocol::{RawJson, RawObject};
use tokio::sync::watch;

use crate::live::Closed;
use crate::record::Record;
use crate::state::{CallSlot, Effect, Input, SessionState};

/// Characters of a client's name and version that operators see.
const LONGEST_CLIENT: usize = 96;

/// A session's state, with what applies inputs to it.
pub(crate) struct SessionCore {
    session: SessionState,
    facts: watch::Receiver<Arc<ServerFacts>>,
    /// It takes no inputs any more.
    closed: bool,
}

impl SessionCore {
    pub(crate) fn new(
        session: SessionState,
        facts: watch::Receiver<Arc<ServerFacts>>,
    ) -> Box<Self> {
        let closed = false;
        Box::new(Self {
            session,
            facts,
            closed,
        })
    }

    pub(crate) fn session(&self) -> &SessionState {
        &self.session
    }

    pub(super) fn apply(&mut self, input: Input) -> Result<Effect, Closed> {
        if self.closed {
            return Err(Closed);
        }
        let facts = self.facts.borrow().clone();
        Ok(self.session.apply(input, &facts))
    }

    /// Forgets the requests that have ended.
    pub(super) fn tidy(&mut self) {
        self.session.forget_ended();
    }

    /// The record, to be stored.
    pub(super) fn snapshot(&mut self) -> Bytes {
        self.session.forget_ended();
        self.session.record().to_bytes()
    }

    /// Whether it takes inputs, and nothing is going on.
    pub(super) fn is_idle(&mut self) -> bool {
        self.session.forget_ended();
        !self.closed && self.session.is_idle()
    }

    /// If nothing is going on, takes no inputs any more; whether that is so.
    pub(super) fn passivate(&mut self) -> bool {
        let idle = self.is_idle();
        self.closed |= idle;
        idle
    }

    /// Takes no inputs any more, whatever is going on; reports what runs.
    pub(super) fn end(&mut self) -> Vec<Arc<CallSlot>> {
        self.session.forget_ended();
        self.closed = true;
        self.session.slots()
    }

    pub(super) fn record(&self) -> &Record {
        self.session.record()
    }

    /// Name and version of the client, as operators see them.
    pub(super) fn client(&self) -> Option<Arc<str>> {
        self.session.caller().client_info.as_ref().map(client_name)
    }
}

fn client_name(info: &RawJson) -> Arc<str> {
    let info = RawObject::of(info).unwrap_or_default();
    let member = |name: &str| info.get(name).and_then(|value| value.string());
    let name = member("name").unwrap_or_default();
    let version = member("version").unwrap_or_default();
    shown(format!("{name} {version}").trim(), LONGEST_CLIENT).into()
}
