//! Announces this node, renews its lease and tracks the other nodes.

mod gauges;
mod heartbeat;
mod lease;
mod liveness;
mod pools;
pub(crate) mod roster;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{
    ClusterBus, ClusterEvent, Directory, Liveness, Membership, NodeId, NodeInfo, Store, StoreError,
};
use shoal_telemetry::metrics::Registration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::lease::{Certainty, LeaseClock};
use self::pools::Memory;
pub use self::pools::{PoolsElsewhere, PoolsHere};
use crate::config::MembersConfig;
use crate::peers::Peers;
use crate::status::LeaseStatus;
use crate::view::{Node, View};

/// Two renewals may fail before the lease lapses.
pub(crate) const BEATS: u32 = 3;

/// The owner of the sessions under this node's lease.
#[async_trait]
pub trait Ownership: Send + Sync + 'static {
    /// Checks by [`Directory::held`] which sessions this node still owns, after its lease lapsed or
    /// another node took it for dead. Calls do not overlap, but a new reason causes another call.
    /// The future is dropped when the node leaves.
    ///
    /// # Errors
    /// When the store does not answer; the call is then repeated.
    async fn revalidate(&self) -> Result<(), StoreError>;
}

/// The load of this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLoad {
    /// Sessions on the node.
    pub sessions: u64,
    /// Requests in flight.
    pub in_flight: u64,
}

/// This node's membership and its view of the others. A cheap handle; background tasks run until
/// [`Members::leave`].
#[derive(Clone)]
pub struct Members {
    shared: Arc<MembersInner>,
}

pub(crate) struct WaitGuard<'a>(&'a AtomicUsize);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct MembersInner {
    config: MembersConfig,
    me: Mutex<NodeInfo>,
    id: NodeId,
    load: OnceLock<Box<dyn Fn() -> NodeLoad + Send + Sync>>,
    pools: Memory,
    directory: Arc<dyn Directory>,
    membership: Arc<dyn Membership>,
    bus: Arc<dyn ClusterBus>,
    peers: Arc<dyn Peers>,
    view: watch::Sender<Arc<View>>,
    announced: watch::Sender<Vec<NodeInfo>>,
    lease: Mutex<LeaseClock>,
    failing: Mutex<Option<String>>,
    certainty: Certainty,
    /// Other nodes may have claimed sessions.
    doubted: Notify,
    refresh_now: Notify,
    waiting: AtomicUsize,
    /// Locked while announcing, so that the newest announcement stays.
    announcing: tokio::sync::Mutex<()>,
    leaving: AtomicBool,
    stop: CancellationToken,
    tasks: TaskTracker,
    counted: Mutex<Vec<Registration>>,
}

impl Members {
    /// Takes this node's lease (when `me.session`), announces the node, reads the others, and keeps
    /// this up in the background. After later store failures it keeps the last view and retries.
    ///
    /// # Errors
    /// When the store fails now: without a lease the node cannot own sessions.
    pub async fn join(
        config: MembersConfig,
        me: NodeInfo,
        store: &Store,
        peers: Arc<dyn Peers>,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(MembersInner {
            lease: Mutex::new(LeaseClock::new(config.lease)),
            failing: Mutex::default(),
            config,
            id: me.id.clone(),
            view: watch::Sender::new(Arc::new(View::alone(me.clone()))),
            announced: watch::Sender::default(),
            me: Mutex::new(me),
            load: OnceLock::new(),
            pools: Memory::default(),
            directory: Arc::clone(&store.directory),
            membership: Arc::clone(&store.membership),
            bus: Arc::clone(&store.bus),
            peers,
            certainty: Certainty::default(),
            doubted: Notify::new(),
            refresh_now: Notify::new(),
            waiting: AtomicUsize::new(0),
            announcing: tokio::sync::Mutex::new(()),
            leaving: AtomicBool::new(false),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            counted: Mutex::default(),
        });
        // Before the nodes are read, so that a node that leaves in between is noticed.
        let news = shared.bus.subscribe();
        shared.renew().await?;
        shared.announce().await?;
        shared.refresh().await?;
        shared.recall_pools().await;
        shared.tasks.spawn(heartbeat::beat(Arc::clone(&shared)));
        shared
            .tasks
            .spawn(roster::follow(Arc::clone(&shared), news));
        *shared.counted.lock() = gauges::observe(&shared);
        Ok(Self { shared })
    }

    /// This node's ID.
    pub fn me(&self) -> &NodeId {
        &self.shared.id
    }

    /// The nodes, now and after each change.
    pub fn watch(&self) -> watch::Receiver<Arc<View>> {
        self.shared.view.subscribe()
    }

    /// Reads the nodes often until the guard is dropped, because clients wait for a dead owner's
    /// lease to lapse.
    pub(crate) fn wait(&self) -> WaitGuard<'_> {
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            self.shared.refresh_now.notify_one();
        }
        WaitGuard(&self.shared.waiting)
    }

    /// The announcements of present nodes, for workers. Changes when nodes come, go or drain, but
    /// not with their load.
    pub fn announced(&self) -> watch::Receiver<Vec<NodeInfo>> {
        self.shared.announced.subscribe()
    }

    /// The nodes now.
    pub fn view(&self) -> Arc<View> {
        self.shared.view.borrow().clone()
    }

    /// Calls `load` for each announcement. Only the first call counts.
    pub fn report_load(&self, load: impl Fn() -> NodeLoad + Send + Sync + 'static) {
        let _ = self.shared.load.set(Box::new(load));
    }

    /// Calls `ownership` whenever others may have claimed this node's sessions, including before
    /// this call.
    pub fn guard(&self, ownership: Arc<dyn Ownership>) {
        let shared = Arc::clone(&self.shared);
        self.shared.tasks.spawn(async move {
            let stop = shared.stop.clone();
            stop.run_until_cancelled(shared.revalidate(&*ownership))
                .await;
        });
    }

    /// Runs a future until this node leaves.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.shared.stop.clone();
        (self.shared.tasks).spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }

    /// The state of nodes for session owners. Does not keep the membership alive.
    pub fn liveness(&self) -> Arc<dyn Liveness> {
        Arc::new(liveness::Watched(Arc::downgrade(&self.shared)))
    }

    pub(crate) async fn is_gone(&self, node: &Node) -> bool {
        self.shared.is_gone(node).await
    }

    /// The lease by this node's clock.
    pub fn lease(&self) -> LeaseStatus {
        let lease = self.shared.lease.lock();
        let remaining = lease.remaining(Instant::now());
        LeaseStatus {
            held: !remaining.is_zero(),
            remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
            lapses: lease.lapses(),
        }
    }

    pub(crate) fn has_lease(&self) -> bool {
        self.shared.me.lock().session
    }

    /// Why the store refused the last heartbeat, if it did. A store that answers only reads refuses
    /// heartbeats.
    pub fn heartbeat_failure(&self) -> Option<String> {
        self.shared.failing.lock().clone()
    }

    /// Announces that this node, joined as draining, accepts sessions. Retries if the store is
    /// away.
    pub async fn open(&self) {
        {
            let mut me = self.shared.me.lock();
            if self.shared.leaving.load(Ordering::Acquire) {
                return;
            }
            me.draining = false;
            me.starting = false;
        }
        self.shared.look_at_me();
        if let Err(error) = self.shared.announce().await {
            tracing::warn!(%error, "cannot announce that this node takes sessions; retrying");
        }
    }

    /// Whether this node accepts sessions.
    pub fn is_open(&self) -> bool {
        !self.shared.me.lock().draining
    }

    /// Announces that this node is leaving: others place no sessions here, and waiting requests
    /// search again. Sessions stay until they are released. Retries if the store is away.
    pub async fn drain(&self) {
        {
            let mut me = self.shared.me.lock();
            self.shared.leaving.store(true, Ordering::Release);
            me.draining = true;
            me.starting = false;
        }
        self.shared.look_at_me();
        if let Err(error) = self.shared.announce().await {
            tracing::warn!(%error, "cannot announce that this node drains; retrying");
        }
        self.shared.tell_left().await;
    }

    /// Ends the background tasks, the lease and the announcement. The latter two lapse if the store
    /// is away.
    pub async fn leave(&self) {
        let shared = &self.shared;
        shared.stop.cancel();
        shared.tasks.close();
        // A late renewal would start a new lease.
        shared.tasks.wait().await;
        if shared.me.lock().session {
            let ended = shared.in_time(shared.directory.end_lease(&shared.id)).await;
            warn_of(ended, "cannot end the lease; it will expire");
            shared.lease.lock().ended();
            shared.certainty.ended();
        }
        shared.counted.lock().clear();
        let withdrawn = shared.in_time(shared.membership.withdraw(&shared.id)).await;
        warn_of(
            withdrawn,
            "cannot withdraw this node; its entry will expire",
        );
        shared.tell_left().await;
    }

    /// Has the nodes read after a request named an unknown one.
    pub(crate) fn refresh_soon(&self) {
        self.shared.refresh_now.notify_one();
    }

    pub(crate) fn was_gone(&self, node: &Node) -> bool {
        node.peer.was_gone(self.shared.config.lease)
    }

    pub(crate) fn suspicion(&self) -> Duration {
        self.shared.config.suspicion
    }
}

impl MembersInner {
    /// Interval of heartbeats, and time for the store to answer.
    fn beat(&self) -> Duration {
        self.config.lease / BEATS
    }

    /// A store that hangs counts as away.
    async fn in_time<T>(
        &self,
        asked: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self.beat();
        tokio::time::timeout(limit, asked)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable(format!("no answer in {limit:?}"))))
    }

    async fn tell_left(&self) {
        let news = ClusterEvent::NodeLeft {
            node: self.id.clone(),
        };
        let told = self.in_time(self.bus.publish(news)).await;
        warn_of(told, "cannot announce that this node leaves");
    }
}

fn warn_of(done: Result<(), StoreError>, what: &str) {
    if let Err(error) = done {
        tracing::warn!(%error, "{what}");
    }
}
