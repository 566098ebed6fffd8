use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use shoal_ports::{
    AskId, CallId, Caller, ClientInfo, DeliveryId, Epoch, Principal, ServerFacts, SessionId,
    SessionTasks, SessionTransport,
};
use shoal_protocol::task::Task;
use shoal_protocol::{LogLevel, RequestId, Revision};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

use crate::actor::SessionActorSlot;
use crate::call::GrantedCaller;
use crate::clock::unix_millis;
use crate::config::SessionConfig;
use crate::record::Record;
use crate::sessions::{Node, SessionFacts};
use crate::state::{Admitted, CallSlot, Effect, Input, SessionMachine};
use crate::state_lock::StateLock;
use crate::stored::Share;
use crate::streams::SessionStreams;

pub(crate) struct LiveSession {
    pub(crate) id: SessionId,
    pub(crate) principal: Principal,
    pub(crate) transport: SessionTransport,
    /// Milliseconds since 1970, if known.
    pub(crate) opened_at: Option<u64>,
    pub(crate) epoch: Epoch,
    /// The epoch that workers see. If the store has lost a later claim that a worker knows, the rank exceeds that
    /// claim's epoch.
    rank: AtomicU64,
    pub(crate) node: Weak<Node>,
    pub(crate) streams: Arc<SessionStreams>,
    pub(crate) share: Arc<Share>,
    /// Milliseconds of the node's clock.
    pub(crate) last_used: AtomicU64,
    /// Milliseconds of the node's clock.
    pub(crate) last_saved: AtomicU64,
    pub(crate) actor: SessionActorSlot,
    core: StateLock<SessionCore>,
    facts: watch::Receiver<Arc<ServerFacts>>,
    admitted: Arc<Admitted>,
    task_changes: Notify,
    pub(crate) granted: GrantedCaller,
    handshake: OnceLock<(Revision, Arc<str>)>,
}

struct SessionCore {
    session: SessionMachine,
    closed: bool,
}

/// The session takes no more inputs. The caller must find it again.
#[derive(Debug)]
pub(crate) struct Closed;

impl LiveSession {
    pub(crate) fn new(
        node: &Node,
        id: SessionId,
        session: SessionMachine,
        (epoch, share): (Epoch, Arc<Share>),
    ) -> Arc<Self> {
        let handshake = OnceLock::new();
        publish(&handshake, &session);
        Arc::new_cyclic(|live| Self {
            streams: Arc::new(SessionStreams::new(
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
            actor: SessionActorSlot::default(),
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

    /// If the effect admitted a call, dropping the effect ends the call.
    pub(crate) fn apply(&self, input: Input) -> Result<Effect, Closed> {
        let facts = self.facts.borrow().clone();
        let applied = self.core.with(|core| {
            let effect = (!core.closed).then(|| core.session.apply(input, &facts));
            publish(&self.handshake, &core.session);
            effect
        });
        applied.flatten().ok_or(Closed)
    }

    pub(crate) fn note(&self, input: Input) {
        let _ = self.apply(input);
    }

    pub(crate) fn task_changed(&self) {
        self.note(Input::TaskChanged(unix_millis()));
        self.tell_of_task();
    }

    pub(crate) fn task_withdraws(&self, call: CallId, ask: AskId) {
        self.note(Input::TaskWithdrawn(call, ask));
        self.task_changed();
    }

    /// Cancellation safe.
    pub(crate) fn next_task_change(&self) -> Notified<'_> {
        self.task_changes.notified()
    }

    /// Restarts the time for which the task is kept.
    pub(crate) fn tell_of_task(&self) {
        self.task_changes.notify_waiters();
        if let Some(node) = self.node.upgrade() {
            self.last_used.store(node.now(), Ordering::Relaxed);
        }
    }

    pub(crate) fn unlist(&self) {
        if self.transport == SessionTransport::Task
            && let Some(node) = self.node.upgrade()
        {
            node.task_lists.end(&self.id);
        }
    }

    pub(crate) fn snapshot(&self) -> Option<Bytes> {
        self.core.with(|core| core.session.snapshot())
    }

    /// `None` if the session is not a task, or has panicked.
    pub(crate) fn task(&self) -> Option<Task> {
        self.core.with(|core| core.session.task()).flatten()
    }

    /// The outer `None` means that the session has panicked.
    pub(crate) fn made_tasks(&self) -> Option<Option<SessionTasks>> {
        self.core.with(|core| core.session.made_tasks())
    }

    pub(crate) fn task_status(&self) -> Option<&'static str> {
        self.core.with(|core| core.session.task_status()).flatten()
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Record) -> T) -> Option<T> {
        self.core.with(|core| read(core.session.record()))
    }

    pub(crate) fn logs(&self, level: LogLevel) -> bool {
        let facts = self.facts.borrow().clone();
        let logs = self.core.with(|core| core.session.logs(level, &facts));
        logs.unwrap_or_default()
    }

    pub(crate) fn caller(&self) -> Option<Arc<Caller>> {
        self.core.with(|core| core.session.caller().clone())
    }

    pub(crate) fn subscriptions(&self) -> BTreeSet<String> {
        self.read(|record| record.subscriptions.clone())
            .unwrap_or_default()
    }

    /// Returns the calls of the requests and of the delivery that still run.
    pub(crate) fn running(
        &self,
        requests: &[RequestId],
        delivery: DeliveryId,
    ) -> Vec<Arc<CallSlot>> {
        match self.apply(Input::Runs(requests.to_vec(), delivery)) {
            Ok(Effect::Running(running)) => running,
            _ => Vec::new(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        let idle = |core: &mut SessionCore| !core.closed && core.session.is_idle();
        self.core.with(idle).unwrap_or_default()
    }

    pub(crate) fn passivate(&self) -> bool {
        let passivate = |core: &mut SessionCore| {
            let idle = !core.closed && core.session.is_idle();
            core.closed |= idle;
            idle
        };
        self.core.with(passivate).unwrap_or_default()
    }

    pub(crate) fn stay(&self) {
        self.core.with(|core| core.closed = false);
    }

    pub(crate) fn end(&self) -> Vec<Arc<CallSlot>> {
        let end = |core: &mut SessionCore| {
            core.closed = true;
            core.session.slots()
        };
        self.core.with(end).unwrap_or_default()
    }

    pub(crate) fn forget(&self) {
        self.core.forget();
    }

    pub(crate) fn is_forgotten(&self) -> bool {
        self.core.is_forgotten()
    }

    pub(crate) fn calls_of(&self, requests: Option<&[RequestId]>) -> Vec<Arc<CallSlot>> {
        self.admitted.of(requests)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.admitted.count()
    }

    pub(crate) fn held(&self) -> usize {
        self.admitted.held()
    }

    pub(crate) fn rank(&self) -> Epoch {
        Epoch(self.rank.load(Ordering::Relaxed))
    }

    pub(crate) fn outrank(&self, epoch: Epoch) {
        self.rank
            .fetch_max(epoch.0.saturating_add(1), Ordering::Relaxed);
    }

    pub(crate) fn lose(&self) {
        self.streams.lose();
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.streams.is_lost()
    }

    /// Cancellation safe.
    pub(crate) async fn until_over(&self) {
        self.streams.until_over().await;
    }

    pub(crate) fn about(&self) -> SessionFacts {
        SessionFacts {
            client: self.handshake.get().map(|(_, client)| client.clone()),
            revision: self.revision(),
            transport: self.transport,
            opened_at: self.opened_at,
        }
    }

    pub(crate) fn revision(&self) -> Option<Revision> {
        self.handshake.get().map(|(revision, _)| *revision)
    }

    pub(crate) fn offers_tasks(&self, config: &SessionConfig) -> bool {
        config.tasks.enabled
            && self.transport == SessionTransport::Streamable
            && self.revision().is_some_and(Revision::has_tasks)
    }

    pub(crate) fn primes_streams(&self) -> bool {
        self.revision().is_some_and(Revision::primes_streams)
    }
}

fn publish(handshake: &OnceLock<(Revision, Arc<str>)>, session: &SessionMachine) {
    if handshake.get().is_none()
        && let Some(settled) = &session.record().handshake
    {
        let client = session.caller().client_info.as_ref();
        let name = client.map_or("", ClientInfo::name);
        let _ = handshake.set((settled.revision, name.into()));
    }
}
