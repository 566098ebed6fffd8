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
use serde::Serialize;
use shoal_ports::{
    ClusterBus, ClusterEvent, Directory, Liveness, Membership, NodeId, NodeInfo, Store, StoreError,
};
use shoal_telemetry::metrics::Registration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::lease::{Certainty, LeaseClock};
use self::pools::PoolMemory;
pub use self::pools::{PoolsElsewhere, PoolsHere};
use crate::config::MembersConfig;
use crate::peers::Peers;
use crate::view::{Node, View};

/// Heartbeats in one lease: two renewals may fail before the lease lapses.
pub(crate) const BEATS: u32 = 3;

/// Checks the sessions that this node owns under its lease.
#[async_trait]
pub trait Ownership: Send + Sync + 'static {
    /// Checks with [`Directory::held`] which sessions this node still owns. Called after the lease lapsed, or after
    /// another node thought this node dead. Calls do not overlap. The future is dropped when the node leaves.
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
    pools: PoolMemory,
    directory: Arc<dyn Directory>,
    membership: Arc<dyn Membership>,
    bus: Arc<dyn ClusterBus>,
    peers: Arc<dyn Peers>,
    view: watch::Sender<Arc<View>>,
    announced: watch::Sender<Vec<NodeInfo>>,
    lease: Mutex<LeaseClock>,
    failing: Mutex<Option<String>>,
    certainty: Certainty,
    doubted: Notify,
    refresh_now: Notify,
    waiting: AtomicUsize,
    /// Held while announcing, so that the store ends with the newest announcement.
    announcing: tokio::sync::Mutex<()>,
    leaving: AtomicBool,
    stop: CancellationToken,
    tasks: TaskTracker,
    counted: Mutex<Vec<Registration>>,
}

/// This node's lease, by this node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseStatus {
    /// Whether the lease is valid now.
    pub held: bool,
    /// Milliseconds until the lease lapses.
    pub remaining_ms: u64,
    /// How often the lease has lapsed since the start.
    pub lapses: u64,
}

impl Members {
    /// Takes this node's lease (if `me.session`), announces the node and reads the list of nodes. Background tasks
    /// repeat these steps, and keep the last view if the store fails later.
    ///
    /// # Errors
    /// If the store fails now.
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
            pools: PoolMemory::default(),
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
        // Subscribe before reading the nodes, so as not to miss one that leaves.
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

    /// Returns this node's ID.
    pub fn me(&self) -> &NodeId {
        &self.shared.id
    }

    /// Returns a receiver of the view of the nodes.
    pub fn watch(&self) -> watch::Receiver<Arc<View>> {
        self.shared.view.subscribe()
    }

    /// Reads the list of nodes often until the guard is dropped, for a request that waits for a change.
    pub(crate) fn wait(&self) -> WaitGuard<'_> {
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            self.shared.refresh_now.notify_one();
        }
        WaitGuard(&self.shared.waiting)
    }

    /// Returns a receiver of the present nodes' announcements, for workers. The receiver changes when nodes come, go
    /// or drain, but not with their load.
    pub fn announced(&self) -> watch::Receiver<Vec<NodeInfo>> {
        self.shared.announced.subscribe()
    }

    /// Returns the latest view of the nodes.
    pub fn view(&self) -> Arc<View> {
        self.shared.view.borrow().clone()
    }

    /// Sets the source of this node's load, which is called for each announcement. Only the first call has an effect.
    pub fn report_load(&self, load: impl Fn() -> NodeLoad + Send + Sync + 'static) {
        let _ = self.shared.load.set(Box::new(load));
    }

    /// Has `ownership` check its sessions whenever other nodes may have claimed some, even before this call.
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

    /// Returns a source of evidence about leases and nodes, which does not keep the membership
    /// alive.
    pub fn liveness(&self) -> Arc<dyn Liveness> {
        Arc::new(liveness::Watched(Arc::downgrade(&self.shared)))
    }

    pub(crate) async fn is_gone(&self, node: &Node) -> bool {
        self.shared.is_gone(node).await
    }

    /// Returns this node's lease, by this node's clock.
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

    /// Returns why the last heartbeat failed, if it did.
    pub fn heartbeat_failure(&self) -> Option<String> {
        self.shared.failing.lock().clone()
    }

    /// Announces that this node, which joined as draining, now accepts sessions. Heartbeats retry a failed
    /// announcement.
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

    /// Announces that this node is leaving: other nodes place no more sessions here, and requests that wait for an
    /// owner search again. Sessions stay until released. Heartbeats retry a failed announcement.
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

    /// Ends background tasks, lease and announcement. If the store is away, the last two lapse by themselves.
    pub async fn leave(&self) {
        let shared = &self.shared;
        shared.stop.cancel();
        shared.tasks.close();
        // Wait for the tasks first, because a late renewal would begin a new lease.
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

    /// Called when a request names an unknown node.
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
    /// The store has this long to answer.
    fn beat(&self) -> Duration {
        self.config.lease / BEATS
    }

    /// A store that does not answer in time counts as away.
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
