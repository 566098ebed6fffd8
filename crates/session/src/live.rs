//! A session that this node has in memory.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use shoal_ports::{
    AskId, CallId, Caller, ClientInfo, Epoch, GatewayError, LogError, Principal, ServerFacts,
    SessionId, SessionTransport, StoreError,
};
use shoal_protocol::{LogLevel, RequestId, Revision};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

use crate::actor::ActorSlot;
use crate::call::GrantedCaller;
use crate::clock::unix_millis;
use crate::config::SessionConfig;
use crate::record::Record;
use crate::sessions::{About, Node};
use crate::state::{Admitted, CallSlot, Effect, Input, SessionState};
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
    /// What it says to workers in place of its epoch, if they have heard of a later one that the store has lost.
    rank: AtomicU64,
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
    facts: watch::Receiver<Arc<ServerFacts>>,
    /// The requests in flight.
    admitted: Arc<Admitted>,
    /// Wakes who waits for a change of the task that it is.
    task_changes: Notify,
    /// Its client with what its requests are granted.
    pub(crate) granted: GrantedCaller,
    /// What `initialize` settled: the revision, and the client's name and version as operators see them.
    handshake: OnceLock<(Revision, Arc<str>)>,
}

/// A session's state, and whether it takes no inputs any more.
struct SessionCore {
    session: SessionState,
    closed: bool,
}

/// The session takes no inputs here any more, and must be found anew.
#[derive(Debug)]
pub(crate) struct Closed;

impl LiveSession {
    /// A session that `node` owns in this epoch.
    pub(crate) fn new(
        node: &Node,
        id: SessionId,
        session: SessionState,
        (epoch, share): (Epoch, Arc<Share>),
    ) -> Arc<Self> {
        let handshake = OnceLock::new();
        publish(&handshake, &session);
        Arc::new_cyclic(|live| Self {
            streams: Arc::new(Streams::new(
                node,
                (id.clone(), epoch),
                live.clone(),
                share.clone(),
            )),
            id,
            principal: session.principal().clone(),
            transport: session.transport(),
            opened_at: session.record().opened_at,
            epoch,
            rank: AtomicU64::new(epoch.0),
            node: node.this.clone(),
            share,
            last_used: AtomicU64::new(node.now()),
            last_saved: AtomicU64::new(node.now()),
            actor: ActorSlot::default(),
            facts: node.driver.dispatcher.facts(),
            admitted: session.admitted().clone(),
            task_changes: Notify::new(),
            granted: GrantedCaller::default(),
            handshake,
            core: StateLock::new(Box::new(SessionCore {
                session,
                closed: false,
            })),
        })
    }

    /// Applies an input to the session, at once. A call that was admitted has ended when the effect is dropped.
    pub(crate) fn apply(&self, input: Input) -> Result<Effect, Closed> {
        let facts = self.facts.borrow().clone();
        let applied = self.core.with(|core| {
            let effect = (!core.closed).then(|| core.session.apply(input, &facts));
            publish(&self.handshake, &core.session);
            effect
        });
        applied.flatten().ok_or(Closed)
    }

    /// Applies an input whose effect is nothing to act on.
    pub(crate) fn note(&self, input: Input) {
        // A session that is gone needs no notes.
        let _ = self.apply(input);
    }

    /// What the task that it is asks its client has changed.
    pub(crate) fn task_changed(&self) {
        self.note(Input::TaskChanged(unix_millis()));
        self.tell_of_task();
    }

    /// Nobody waits any more for what the call of the task that it is has asked.
    pub(crate) fn task_withdraws(&self, call: CallId, ask: AskId) {
        self.note(Input::TaskWithdrawn(call, ask));
        self.task_changed();
    }

    /// Returns once the task that it is has changed, from now on. Cancellation safe.
    pub(crate) fn next_task_change(&self) -> Notified<'_> {
        self.task_changes.notified()
    }

    /// The status of the task that it is has changed: whoever watches it asks for it. The time that a task is kept for begins
    /// anew, also where nobody asks.
    pub(crate) fn tell_of_task(&self) {
        self.task_changes.notify_waiters();
        if let Some(node) = self.node.upgrade() {
            self.last_used.store(node.now(), Ordering::Relaxed);
            node.task_news.add(&self.id);
        }
    }

    /// The task that it is, if it is one, needs nobody any more who goes on with it here.
    pub(crate) fn unlist(&self) {
        if self.transport == SessionTransport::Task
            && let Some(node) = self.node.upgrade()
        {
            node.task_lists.end(&self.id);
        }
    }

    /// The record as it is now, to be stored.
    pub(crate) fn snapshot(&self) -> Option<Bytes> {
        self.core.with(|core| core.session.snapshot())
    }

    /// How the task is that it is, if it is one.
    pub(crate) fn task_status(&self) -> Option<&'static str> {
        self.core.with(|core| core.session.task_status()).flatten()
    }

    /// Reads something of the record.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Record) -> T) -> Option<T> {
        self.core.with(|core| read(core.session.record()))
    }

    /// Whether its client may be sent log messages of this severity.
    pub(crate) fn logs(&self, level: LogLevel) -> bool {
        let facts = self.facts.borrow().clone();
        let logs = self.core.with(|core| core.session.logs(level, &facts));
        logs.unwrap_or_default()
    }

    /// Its client as calls see it, while the session is there.
    pub(crate) fn caller(&self) -> Option<Arc<Caller>> {
        self.core.with(|core| core.session.caller().clone())
    }

    /// The resources that its client is subscribed to.
    pub(crate) fn subscriptions(&self) -> BTreeSet<String> {
        self.read(|record| record.subscriptions.clone())
            .unwrap_or_default()
    }

    /// Whether nothing is going on.
    pub(crate) fn is_idle(&self) -> bool {
        let idle = |core: &mut SessionCore| !core.closed && core.session.is_idle();
        self.core.with(idle).unwrap_or_default()
    }

    /// If nothing is going on, takes no inputs any more; whether that is so.
    pub(crate) fn passivate(&self) -> bool {
        let passivate = |core: &mut SessionCore| {
            let idle = !core.closed && core.session.is_idle();
            core.closed |= idle;
            idle
        };
        self.core.with(passivate).unwrap_or_default()
    }

    /// Takes inputs again: it was not passivated after all.
    pub(crate) fn stay(&self) {
        self.core.with(|core| core.closed = false);
    }

    /// Takes no inputs any more, whatever is going on; reports what runs.
    pub(crate) fn end(&self) -> Vec<Arc<CallSlot>> {
        let end = |core: &mut SessionCore| {
            core.closed = true;
            core.session.slots()
        };
        self.core.with(end).unwrap_or_default()
    }

    /// Forgets the session's state: it is stored, or somebody else's.
    pub(crate) fn forget(&self) {
        self.core.forget();
    }

    /// Whether its state is gone from here.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.core.is_forgotten()
    }

    /// The calls of these requests that still run, answered ones included; `None`: of any request.
    pub(crate) fn calls_of(&self, requests: Option<&[RequestId]>) -> Vec<Arc<CallSlot>> {
        self.admitted.of(requests)
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.admitted.count()
    }

    /// Calls that are not over, their answers included.
    pub(crate) fn held(&self) -> usize {
        self.admitted.held()
    }

    /// The epoch that it says to workers.
    pub(crate) fn rank(&self) -> Epoch {
        Epoch(self.rank.load(Ordering::Relaxed))
    }

    /// A worker has heard of this epoch, which is later, and the store says that there is none: it has lost a claim.
    pub(crate) fn outrank(&self, epoch: Epoch) {
        self.rank
            .fetch_max(epoch.0.saturating_add(1), Ordering::Relaxed);
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
            client: self.handshake.get().map(|(_, client)| client.clone()),
            revision: self.revision(),
            transport: self.transport,
            opened_at: self.opened_at,
        }
    }

    /// The negotiated revision.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.handshake.get().map(|(revision, _)| *revision)
    }

    /// Whether its client is offered tasks of its revision.
    pub(crate) fn offers_tasks(&self, config: &SessionConfig) -> bool {
        config.tasks
            && self.transport == SessionTransport::Streamable
            && self.revision().is_some_and(Revision::has_tasks)
    }

    /// Whether its streams open with a priming event.
    pub(crate) fn primes_streams(&self) -> bool {
        self.revision().is_some_and(Revision::primes_streams)
    }
}

/// What `initialize` settles does not change.
fn publish(handshake: &OnceLock<(Revision, Arc<str>)>, session: &SessionState) {
    if handshake.get().is_none()
        && let Some(settled) = &session.record().handshake
    {
        let client = session.caller().client_info.as_ref();
        let name = client.map_or("", ClientInfo::name);
        let _ = handshake.set((settled.revision, name.into()));
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
