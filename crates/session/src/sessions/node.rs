use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use shoal_ports::{
    Dispatcher, GatewayError, Liveness, NodeId, SessionId, SessionRef, SessionTransport, Store,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::SessionsStatus;
use super::locks::SessionLocks;
use super::places::Places;
use super::table::Table;
use crate::call::CallDriver;
use crate::clock::millis;
use crate::config::SessionConfig;
use crate::live::{Closed, LiveSession};
use crate::state::{Effect, Input, KeptLimits, Limits, News, TaskTimes};
use crate::stored::Stored;
use crate::streams::StreamCounters;
use crate::subscribers::Subscribers;
use crate::task_lists::TaskLists;

pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) config: Arc<SessionConfig>,
    pub(crate) driver: Arc<CallDriver>,
    pub(crate) subscribers: Subscribers,
    pub(crate) task_lists: TaskLists,
    pub(crate) table: Table,
    pub(crate) places: Places,
    pub(crate) locks: SessionLocks,
    pub(crate) draining: CancellationToken,
    pub(crate) handing_over: AtomicBool,
    pub(crate) moves: Moves,
    pub(crate) counters: Arc<StreamCounters>,
    pub(crate) this: Weak<Self>,
    pub(crate) stored: Arc<Stored>,
    pub(crate) liveness: OnceLock<Arc<dyn Liveness>>,
    started: Instant,
}

#[derive(Default)]
pub(crate) struct Moves {
    pub(crate) taken_over: AtomicUsize,
    pub(crate) handed_over: AtomicUsize,
    pub(crate) lost: AtomicUsize,
    pub(crate) resumed_calls: AtomicUsize,
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
            places: Places::new(config.clone()),
            config,
            subscribers: Subscribers::default(),
            task_lists: TaskLists::default(),
            table: Table::default(),
            locks: SessionLocks::default(),
            draining: CancellationToken::new(),
            handing_over: AtomicBool::new(false),
            moves: Moves::default(),
            counters: Arc::default(),
            this: this.clone(),
            liveness: OnceLock::new(),
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
                value: self.config.session.state_value_bytes,
                total: self.config.session.state_bytes,
                keys: self.config.session.state_keys,
            },
            offers_tasks: self.config.tasks.enabled,
            task: TaskTimes {
                ttl: millis(self.config.tasks.ttl.get()),
                poll_interval: millis(self.config.tasks.poll_interval.get()),
            },
            retry_after: self.config.calls.retry_after.get(),
        }
    }

    pub(crate) fn live(&self, session: &SessionId) -> Option<Arc<LiveSession>> {
        let live = self.table.live(session)?;
        (!live.is_lost()).then_some(live)
    }

    pub(crate) fn all_live(&self) -> Vec<Arc<LiveSession>> {
        self.table.all_live()
    }

    pub(crate) fn drain_streams(&self) {
        self.draining.cancel();
        for live in self.all_live() {
            live.streams.look_up();
        }
    }

    pub(crate) fn actors(&self) -> usize {
        let there = |live: &LiveSession| usize::from(live.actor.is_there());
        self.table.sum_of_live(there)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.table.sum_of_live(|live| live.actor.due())
    }

    pub(crate) fn kept(&self) -> u64 {
        self.table.sum_of_live(|live| live.streams.kept())
    }

    pub(crate) fn lost(&self, session: &SessionId) -> Option<Arc<LiveSession>> {
        let live = self.table.live(session)?;
        live.is_lost().then_some(live)
    }

    pub(crate) fn status(&self) -> SessionsStatus {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let (live, passive) = self.table.count();
        SessionsStatus {
            live,
            passive,
            in_flight: self.table.sum_of_live(LiveSession::in_flight),
            journaled: load(&self.driver.running),
            waiting: self.waiting(),
            subscriptions: self.subscribers.count(),
            reserved: self.places.taken(),
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

    pub(crate) async fn tell(&self, live: &Arc<LiveSession>, input: Input) -> Result<(), Closed> {
        match live.apply(input)? {
            Effect::Announce(news) => self.announce(live, news).await,
            Effect::Pass(news) => live.streams.pass(news),
            _ => {}
        }
        Ok(())
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
                tracing::warn!(session = %live.id, %error, "cannot announce a change");
                live.note(Input::Unannounced(updated));
                live.streams.pass(lists);
            }
        }
    }

    /// Checks the caller and this node's ownership. Wakes a passivated session.
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

    pub(crate) fn is_single_stream(live: &LiveSession) -> bool {
        live.transport == SessionTransport::SingleStream
    }
}
