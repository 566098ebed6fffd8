//! A session that this node has in memory.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use shoal_ports::{
    Epoch, GatewayError, LogError, Principal, SessionId, SessionTransport, StoreError,
};
use shoal_protocol::Revision;

use crate::actor::ActorSlot;
use crate::config::SessionConfig;
use crate::record::Record;
use crate::session_core::SessionCore;
use crate::sessions::{About, Node};
use crate::state::{Admitted, CallSlot, Effect, Input};
use crate::state_lock::StateLock;
use crate::stored::Share;
use crate::streams::Streams;

/// A session that this node has in memory. It has an actor while there is something durable to do to it.
pub(crate) struct LiveSession {
    pub(crate) id: SessionId,
    pub(crate) principal: Principal,
    pub(crate) transport: SessionTransport,
    /// When it was opened, in milliseconds since 1970, if that is known.
    pub(crate) opened_at: Option<u64>,
    pub(crate) epoch: Epoch,
    /// Whose it is.
    pub(crate) node: Weak<Node>,
    pub(crate) streams: Arc<Streams>,
    /// What it has stored.
    pub(crate) share: Arc<Share>,
    /// When the session was last used, in milliseconds of the node's clock.
    pub(crate) last_used: AtomicU64,
    /// When its record was last stored, likewise.
    pub(crate) last_saved: AtomicU64,
    pub(crate) actor: ActorSlot,
    /// Gone once the session is at its end here, or has panicked: then it is rebuilt from its record.
    core: StateLock<SessionCore>,
    /// The requests in flight.
    admitted: Arc<Admitted>,
    /// The negotiated revision.
    revision: OnceLock<Revision>,
    /// Name and version of the client, as operators see them.
    client: OnceLock<Arc<str>>,
}

/// The session takes no inputs here any more, and must be found anew.
#[derive(Debug)]
pub(crate) struct Closed;

/// What a session is made of.
pub(crate) struct NewLive {
    pub(crate) id: SessionId,
    pub(crate) epoch: Epoch,
    pub(crate) node: Weak<Node>,
    pub(crate) core: Box<SessionCore>,
    pub(crate) share: Arc<Share>,
    /// The node's time.
    pub(crate) now: u64,
}

impl LiveSession {
    pub(crate) fn new(
        new: NewLive,
        streams: impl FnOnce(&Weak<Self>) -> Arc<Streams>,
    ) -> Arc<Self> {
        let session = new.core.session();
        let (principal, transport) = (session.principal().clone(), session.transport());
        let (opened_at, admitted) = (session.record().opened_at, session.admitted().clone());
        let live = Arc::new_cyclic(|live| Self {
            streams: streams(live),
            id: new.id,
            principal,
            transport,
            opened_at,
            epoch: new.epoch,
            node: new.node,
            share: new.share,
            last_used: AtomicU64::new(new.now),
            last_saved: AtomicU64::new(new.now),
            actor: ActorSlot::default(),
            admitted,
            core: StateLock::new(new.core),
            revision: OnceLock::new(),
            client: OnceLock::new(),
        });
        live.core.with(|core| live.publish(core));
        live
    }

    /// Applies an input to the session, at once. A call that was admitted has ended when the effect is dropped.
    pub(crate) fn apply(&self, input: Input) -> Result<Effect, Closed> {
        let applied = self.core.with(|core| {
            let applied = core.apply(input);
            self.publish(core);
            applied
        });
        applied.unwrap_or(Err(Closed))
    }

    /// Applies an input whose effect is nothing to act on.
    pub(crate) fn note(&self, input: Input) {
        // A session that is gone needs no notes.
        let _ = self.apply(input);
    }

    /// Much has ended that the state machine does not know of: it learns of it with whatever it is told next, rather
    /// than with every call's end.
    pub(crate) fn tidy(&self) {
        self.core.with(SessionCore::tidy);
    }

    /// The record as it is now.
    pub(crate) fn snapshot(&self) -> Option<Bytes> {
        self.core.with(SessionCore::snapshot)
    }

    /// Reads something of the record.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Record) -> T) -> Option<T> {
        self.core.with(|core| read(core.record()))
    }

    /// The resources that its client is subscribed to.
    pub(crate) fn subscriptions(&self) -> BTreeSet<String> {
        self.read(|record| record.subscriptions.clone())
            .unwrap_or_default()
    }

    /// Whether nothing is going on.
    pub(crate) fn is_idle(&self) -> bool {
        self.core.with(|core| core.is_idle()).unwrap_or_default()
    }

    /// If nothing is going on, takes no inputs any more; whether that is so.
    pub(crate) fn passivate(&self) -> bool {
        self.core.with(SessionCore::passivate).unwrap_or_default()
    }

    /// Takes no inputs any more, whatever is going on; reports what runs.
    pub(crate) fn end(&self) -> Vec<Arc<CallSlot>> {
        self.core.with(SessionCore::end).unwrap_or_default()
    }

    /// Forgets the session's state: it is stored, or somebody else's.
    pub(crate) fn forget(&self) {
        self.core.forget();
    }

    /// Whether its state is gone from here.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.core.is_forgotten()
    }

    fn publish(&self, core: &SessionCore) {
        if self.revision.get().is_none()
            && let Some(revision) = core.session().revision()
        {
            // It does not change.
            let _ = self.revision.set(revision);
            if let Some(client) = core.client() {
                let _ = self.client.set(client);
            }
        }
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.admitted.count()
    }

    /// Calls that are not over, their answers included.
    pub(crate) fn held(&self) -> usize {
        self.admitted.held()
    }

    /// Another node owns the session, or nobody knows: nothing is written here any more.
    pub(crate) fn lose(&self) {
        self.streams.lose();
    }

    /// Whether this node has lost the session.
    pub(crate) fn is_lost(&self) -> bool {
        self.streams.is_lost()
    }

    /// Returns when the session ends, or this node loses it. Cancellation safe.
    pub(crate) async fn until_over(&self) {
        self.streams.until_over().await;
    }

    /// What operators see of it.
    pub(crate) fn about(&self) -> About {
        About {
            client: self.client.get().cloned(),
            revision: self.revision(),
            transport: self.transport,
            opened_at: self.opened_at,
        }
    }

    /// The negotiated revision.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    /// Whether its streams open with a priming event.
    pub(crate) fn primes_streams(&self) -> bool {
        self.revision().is_some_and(Revision::primes_streams)
    }
}

/// What a client is told when the store fails.
pub(crate) fn store_failed(error: &StoreError, config: &SessionConfig) -> GatewayError {
    let retry_after = config.retry_after;
    match error {
        StoreError::NotFound => GatewayError::NotFound,
        StoreError::Full(limit) => GatewayError::Overloaded {
            reason: (*limit).to_owned(),
            retry_after,
        },
        StoreError::Stale | StoreError::Held => GatewayError::Moved { owner: None },
        StoreError::Forgotten | StoreError::Unavailable(_) | StoreError::Away(_) => {
            GatewayError::Unavailable {
                reason: error.to_string(),
                retry_after,
            }
        }
    }
}

/// What a client is told when the log fails.
pub(crate) fn log_failed(error: &LogError, config: &SessionConfig) -> GatewayError {
    match error {
        LogError::Gone(reason) => GatewayError::HistoryGone((*reason).into()),
        LogError::Store(error) => store_failed(error, config),
    }
}
