//! What a node holds of its sessions.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use dashmap::DashMap;
use foldhash::fast::RandomState;
use shoal_ports::{
    Dispatcher, Epoch, GatewayError, Liveness, NodeId, Principal, SessionId, SessionRef,
    SessionTransport, Store,
};
use shoal_protocol::Revision;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::SessionsStatus;
use crate::announce::Subscribers;
use crate::call::CallDriver;
use crate::clock::millis;
use crate::config::SessionConfig;
use crate::live::LiveSession;
use crate::state::{Effect, Input, KeptLimits, Limits, News, TaskTimes};
use crate::stored::{Share, Stored};
use crate::streams::StreamCounters;
use crate::task_lists::TaskLists;
use crate::task_news::TaskNews;

/// How many locks serialise waking and putting to sleep; sessions share them by hash.
const WAKE_LOCKS: usize = 64;

/// What a node holds of its sessions.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) config: Arc<SessionConfig>,
    pub(crate) driver: Arc<CallDriver>,
    pub(crate) subscribers: Subscribers,
    /// Tasks of which there is news for everybody.
    pub(crate) task_news: TaskNews,
    /// What the store is told of the tasks that run here.
    pub(crate) task_lists: TaskLists,
    pub(crate) passive: DashMap<SessionId, Passive>,
    pub(crate) draining: CancellationToken,
    /// Set when the node gives its sessions to others and takes none.
    pub(crate) handing_over: AtomicBool,
    pub(crate) moves: Moves,
    pub(crate) counters: Arc<StreamCounters>,
    /// The node itself, for its sessions.
    pub(crate) this: Weak<Self>,
    /// What the sessions have stored.
    pub(crate) stored: Arc<Stored>,
    /// How this node stands with the others, if there are any.
    pub(crate) liveness: OnceLock<Arc<dyn Liveness>>,
    live: DashMap<SessionId, Arc<LiveSession>, RandomState>,
    held: AtomicUsize,
    held_by: DashMap<Principal, usize>,
    wake_locks: Vec<Arc<tokio::sync::Mutex<()>>>,
    started: Instant,
}

/// Counts of sessions that came from other nodes or went to them.
#[derive(Default)]
pub(crate) struct Moves {
    pub(crate) taken_over: AtomicUsize,
    pub(crate) handed_over: AtomicUsize,
    pub(crate) lost: AtomicUsize,
    /// Calls of an earlier owner that were resumed.
    pub(crate) resumed_calls: AtomicUsize,
}

/// What is left on a node of a passivated session; the rest is in the store. The node owns it still.
pub(crate) struct Passive {
    pub(crate) principal: Principal,
    pub(crate) epoch: Epoch,
    pub(crate) subscriptions: BTreeSet<String>,
    /// When the session was last used, on the node's clock.
    pub(crate) last_used: u64,
    /// Subscribed resources that changed meanwhile.
    pub(crate) updated: BTreeSet<String>,
    /// Whether it is a task whose end was known here.
    pub(crate) has_ended: bool,
    /// What operators see of it.
    pub(crate) about: About,
    /// What it has stored.
    pub(crate) share: Arc<Share>,
}

/// What operators see of a session, live or not.
pub(crate) struct About {
    pub(crate) client: Option<Arc<str>>,
    pub(crate) revision: Option<Revision>,
    pub(crate) transport: SessionTransport,
    /// In milliseconds since 1970, if that is known.
    pub(crate) opened_at: Option<u64>,
}

/// The place of a session that is being opened or taken over: given back when this is dropped, unless there is one then.
pub(crate) struct Reserved<'a> {
    node: &'a Node,
    principal: Option<Principal>,
}

impl<'a> Reserved<'a> {
    fn of(node: &'a Node, principal: &Principal) -> Self {
        let principal = Some(principal.clone());
        Self { node, principal }
    }

    /// The session is there, and the place its own until it is [counted out](Node::unreserve).
    pub(crate) fn keep(mut self) {
        self.principal = None;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(principal) = &self.principal {
            self.node.unreserve(principal);
        }
    }
}

impl Node {
    pub(crate) fn new(
        config: SessionConfig,
        store: Store,
        dispatcher: Arc<dyn Dispatcher>,
        id: NodeId,
    ) -> Arc<Self> {
        let config = Arc::new(config);
        Arc::new_cyclic(|this| Self {
            id,
            driver: Arc::new(CallDriver {
                config: config.clone(),
                store,
                dispatcher,
                running: Arc::default(),
                is_full: AtomicBool::new(false),
            }),
            stored: Stored::new(config.clone()),
            config,
            subscribers: Subscribers::default(),
            task_news: TaskNews::default(),
            task_lists: TaskLists::default(),
            passive: DashMap::new(),
            draining: CancellationToken::new(),
            handing_over: AtomicBool::new(false),
            moves: Moves::default(),
            counters: Arc::default(),
            this: this.clone(),
            liveness: OnceLock::new(),
            live: DashMap::default(),
            held: AtomicUsize::new(0),
            held_by: DashMap::new(),
            wake_locks: (0..WAKE_LOCKS).map(|_| Arc::default()).collect(),
            started: Instant::now(),
        })
    }

    /// Milliseconds since the node started.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            calls: self.config.limits.calls_per_session,
            subscriptions: self.config.limits.subscriptions_per_session,
            subscription_bytes: self.config.limits.subscription_bytes_per_session,
            kept: KeptLimits {
                value: self.config.state_value_bytes,
                total: self.config.state_bytes,
                keys: self.config.state_keys,
            },
            offers_tasks: self.config.tasks,
            task: TaskTimes {
                ttl: millis(self.config.task_ttl),
                poll_interval: millis(self.config.task_poll_interval),
            },
            retry_after: self.config.retry_after,
        }
    }

    pub(crate) fn live(&self, session: &SessionId) -> Option<Arc<LiveSession>> {
        let live = self.live.get(session)?.value().clone();
        (!live.is_lost()).then_some(live)
    }

    pub(crate) fn all_live(&self) -> Vec<Arc<LiveSession>> {
        self.live
            .iter()
            .map(|entry| entry.value().clone())
            .collect()
    }

    /// Connections that read a standalone stream end, and so do new ones.
    pub(crate) fn drain_streams(&self) {
        self.draining.cancel();
        // Who comes later sees it by itself.
        for live in self.all_live() {
            live.streams.look_up();
        }
    }

    /// Sessions in memory.
    pub(crate) fn live_count(&self) -> usize {
        self.live.len()
    }

    /// Those of them that have an actor.
    pub(crate) fn actors(&self) -> usize {
        let there = |live: &LiveSession| live.actor.is_there();
        self.live.iter().filter(|live| there(live.value())).count()
    }

    /// Messages that actors have yet to do.
    pub(crate) fn waiting(&self) -> usize {
        self.live.iter().map(|live| live.actor.due()).sum()
    }

    /// Bytes of events that the log keeps for sessions in memory.
    pub(crate) fn kept(&self) -> u64 {
        let kept = |live: &LiveSession| live.streams.kept();
        self.live.iter().map(|live| kept(live.value())).sum()
    }

    pub(crate) fn insert_live(&self, live: Arc<LiveSession>) {
        self.live.insert(live.id.clone(), live);
    }

    /// Takes a session out of the live ones, if it is this very incarnation; whether it was there.
    pub(crate) fn remove_live(&self, live: &LiveSession) -> bool {
        let removed = self
            .live
            .remove_if(&live.id, |_, present| present.epoch == live.epoch);
        removed.is_some()
    }

    /// The incarnation of a session that this node has lost, if it still lies here.
    pub(crate) fn lost(&self, session: &SessionId) -> Option<Arc<LiveSession>> {
        let live = self.live.get(session)?.value().clone();
        live.is_lost().then_some(live)
    }

    pub(crate) fn wake_lock(&self, session: &SessionId) -> &Arc<tokio::sync::Mutex<()>> {
        let hash = session.as_str().bytes().fold(0usize, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        &self.wake_locks[hash % WAKE_LOCKS]
    }

    /// Counts a new session in, unless a cap is reached.
    pub(crate) fn reserve(&self, principal: &Principal) -> Result<Reserved<'_>, GatewayError> {
        let retry_after = self.config.retry_after;
        let limit = self.config.limits.sessions_per_node;
        if self.held.fetch_add(1, Ordering::Relaxed) >= limit {
            self.held.fetch_sub(1, Ordering::Relaxed);
            return Err(GatewayError::TooManySessions { limit, retry_after });
        }
        let limit = self.config.limits.sessions_per_principal;
        let mut held = self.held_by.entry(principal.clone()).or_default();
        // Without authentication everybody is one principal, who must not be kept from the node's sessions.
        if *held >= limit && *principal != Principal::anonymous() {
            self.held.fetch_sub(1, Ordering::Relaxed);
            return Err(GatewayError::TooManySessionsOfPrincipal { limit, retry_after });
        }
        *held += 1;
        drop(held);
        Ok(Reserved::of(self, principal))
    }

    /// Counts a session in that comes from another node: it has been let in there.
    pub(crate) fn reserve_taken_over(
        &self,
        principal: &Principal,
    ) -> Result<Reserved<'_>, GatewayError> {
        let retry_after = self.config.retry_after;
        let limit = self.config.limits.sessions_per_node;
        if self.held.fetch_add(1, Ordering::Relaxed) >= limit {
            self.held.fetch_sub(1, Ordering::Relaxed);
            return Err(GatewayError::TooManySessions { limit, retry_after });
        }
        *self.held_by.entry(principal.clone()).or_default() += 1;
        Ok(Reserved::of(self, principal))
    }

    /// Counts a session out.
    pub(crate) fn unreserve(&self, principal: &Principal) {
        self.held.fetch_sub(1, Ordering::Relaxed);
        self.held_by.remove_if_mut(principal, |_, held| {
            *held = held.saturating_sub(1);
            *held == 0
        });
    }

    pub(crate) fn status(&self) -> SessionsStatus {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        SessionsStatus {
            live: self.live.len(),
            passive: self.passive.len(),
            in_flight: self.live.iter().map(|live| live.in_flight()).sum(),
            journaled: load(&self.driver.running),
            waiting: self.waiting(),
            subscriptions: self.subscribers.count(),
            reserved: load(&self.held),
            streams: load(&self.counters.open),
            resumed: load(&self.counters.resumed),
            history_gone: load(&self.counters.gone),
            cut: load(&self.counters.cut),
            taken_over: load(&self.moves.taken_over),
            handed_over: load(&self.moves.handed_over),
            lost: load(&self.moves.lost),
            resumed_calls: load(&self.moves.resumed_calls),
        }
    }

    /// Applies an input that may have something to announce.
    pub(crate) async fn tell(&self, live: &Arc<LiveSession>, input: Input) {
        match live.apply(input) {
            Ok(Effect::Announce(news)) => self.announce(live, news).await,
            Ok(Effect::Pass(news)) => live.streams.pass(news),
            _ => {}
        }
    }

    async fn announce(&self, live: &LiveSession, news: News) {
        let News {
            lists,
            versions,
            resources,
            updated,
        } = news;
        let appended = match live.streams.standalone().await {
            Ok(tail) => {
                let events = lists.iter().cloned().chain(resources).collect();
                live.streams.append_now(&tail, events).await
            }
            Err(error) => Err(error),
        };
        match appended {
            Ok(()) if !lists.is_empty() => live.note(Input::Announced(versions)),
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(session = %live.id, %error, "could not announce a change");
                // The client hears of the lists at least now; what is not in the log is remembered.
                live.note(Input::Unannounced(updated));
                live.streams.pass(lists);
            }
        }
    }

    /// Finds a session, waking it if need be, that is this node's own as far as it can know. One in other hands does not
    /// exist.
    pub(crate) async fn find(
        self: &Arc<Self>,
        to: &SessionRef,
    ) -> Result<Arc<LiveSession>, GatewayError> {
        let live = match self.live(&to.session) {
            Some(live) => live,
            None => Box::pin(self.wake(to)).await?,
        };
        if live.principal != to.principal {
            return Err(GatewayError::NotFound);
        }
        if self.liveness.get().is_some_and(|own| !own.is_certain()) {
            Box::pin(self.make_certain(&live)).await?;
        }
        live.last_used.store(self.now(), Ordering::Relaxed);
        Ok(live)
    }

    /// Whether everything of the session goes over its standalone stream.
    pub(crate) fn is_single_stream(live: &LiveSession) -> bool {
        live.transport == SessionTransport::SingleStream
    }
}
