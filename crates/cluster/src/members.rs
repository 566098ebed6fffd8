//! The nodes of the cluster, and this one among them: announced, leased, and seen.

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

/// Announcements and renewals within one lease: two may fail before it lapses.
pub(crate) const BEATS: u32 = 3;

/// Whoever owns sessions under this node's lease.
#[async_trait]
pub trait Ownership: Send + Sync + 'static {
    /// Others may have claimed what this node held, since its lease had lapsed or they took this node for gone: ask
    /// [`Directory::held`] and drop the rest. Never called twice at once; another reason to ask during a call is
    /// followed by another call. The future is dropped when the node leaves.
    ///
    /// # Errors
    /// When the store cannot say; it is called again, after pauses, until it can.
    async fn revalidate(&self) -> Result<(), StoreError>;
}

/// What there is to do on this node now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLoad {
    /// Sessions that it holds.
    pub sessions: u64,
    /// Requests in flight.
    pub in_flight: u64,
}

/// This node's membership, and its view of the others. Cheap to clone; its background tasks run until
/// [`Members::leave`].
#[derive(Clone)]
pub struct Members {
    shared: Arc<MembersInner>,
}

/// Counts somebody who waits for nodes to come or go.
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
    /// Why the last heartbeat failed, if it did.
    failing: Mutex<Option<String>>,
    /// Whether the lease can be taken for granted.
    certainty: Certainty,
    /// Told when others may have claimed.
    doubted: Notify,
    refresh_now: Notify,
    /// How many wait for nodes to come or go.
    waiting: AtomicUsize,
    /// Held while this node is announced, so that what was said last is what stays.
    announcing: tokio::sync::Mutex<()>,
    /// Whether it has said that it drains.
    leaving: AtomicBool,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// What reports to the metrics; ends when this node leaves.
    counted: Mutex<Vec<Registration>>,
}

impl Members {
    /// Takes this node's lease (when `me.session`), announces it, reads who else is there, and keeps all
    /// of this up in the background. Store failures from then on are borne: the last view is kept and the
    /// store tried again, with pauses.
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
        // Before the nodes are read, so that whoever leaves in between is heard of.
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

    /// This node's id.
    pub fn me(&self) -> &NodeId {
        &self.shared.id
    }

    /// The nodes, now and whenever that changes.
    pub fn watch(&self) -> watch::Receiver<Arc<View>> {
        self.shared.view.subscribe()
    }

    /// Somebody waits for nodes to come or go: until the value is dropped, the nodes are read in quick succession. A
    /// session of a node that died can be claimed when its lease has lapsed, and its clients notice each moment more.
    pub(crate) fn wait(&self) -> WaitGuard<'_> {
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            self.shared.refresh_now.notify_one();
        }
        WaitGuard(&self.shared.waiting)
    }

    /// What the nodes that are there say of themselves, this one included, as workers are told. Changes
    /// when nodes come, go or begin to drain, not with their load.
    pub fn announced(&self) -> watch::Receiver<Vec<NodeInfo>> {
        self.shared.announced.subscribe()
    }

    /// The nodes now.
    pub fn view(&self) -> Arc<View> {
        self.shared.view.borrow().clone()
    }

    /// Asks `load` with each announcement, so that others place new sessions by it. Only the first call
    /// counts.
    pub fn report_load(&self, load: impl Fn() -> NodeLoad + Send + Sync + 'static) {
        let _ = self.shared.load.set(Box::new(load));
    }

    /// Calls `ownership` whenever others may have claimed what this node held, from now on and if that was so before.
    pub fn guard(&self, ownership: Arc<dyn Ownership>) {
        let shared = Arc::clone(&self.shared);
        self.shared.tasks.spawn(async move {
            let stop = shared.stop.clone();
            stop.run_until_cancelled(shared.revalidate(&*ownership))
                .await;
        });
    }

    /// Runs something for as long as this node is a member.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.shared.stop.clone();
        (self.shared.tasks).spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }

    /// What a node that owns sessions has to know of itself and the others. Does not keep this node among the nodes.
    pub fn liveness(&self) -> Arc<dyn Liveness> {
        Arc::new(liveness::Watched(Arc::downgrade(&self.shared)))
    }

    /// Whether the process of a node is gone, as this one finds by looking for it.
    pub(crate) async fn is_gone(&self, node: &Node) -> bool {
        self.shared.is_gone(node).await
    }

    /// How the lease stands by this node's clock.
    pub fn lease(&self) -> LeaseStatus {
        let lease = self.shared.lease.lock();
        let remaining = lease.remaining(Instant::now());
        LeaseStatus {
            held: !remaining.is_zero(),
            remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
            lapses: lease.lapses(),
        }
    }

    /// Whether this node owns sessions, for which it needs a lease.
    pub(crate) fn has_lease(&self) -> bool {
        self.shared.me.lock().session
    }

    /// Why the store did not take this node's last heartbeat; `None` if it did. Heartbeats are written three times within
    /// a lease, so they fail when the store refuses writes, although it answers.
    pub fn heartbeat_failure(&self) -> Option<String> {
        self.shared.failing.lock().clone()
    }

    /// Says that this node, which joined as one that drains, takes sessions from now on. If the store is
    /// away the background task goes on trying to say so.
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
            tracing::warn!(%error, "could not announce that this node takes sessions; trying on");
        }
    }

    /// Whether this node takes sessions: it has been opened, and does not leave.
    pub fn is_open(&self) -> bool {
        !self.shared.me.lock().draining
    }

    /// Says that this node is leaving: nothing new is placed here, and whoever waits for one of its
    /// sessions looks again. The sessions stay until they are released. If the store is away the
    /// background task goes on trying to say so.
    pub async fn drain(&self) {
        {
            let mut me = self.shared.me.lock();
            self.shared.leaving.store(true, Ordering::Release);
            me.draining = true;
            me.starting = false;
        }
        self.shared.look_at_me();
        if let Err(error) = self.shared.announce().await {
            tracing::warn!(%error, "could not announce that this node drains; trying on");
        }
        self.shared.tell_left().await;
    }

    /// Ends the background tasks, the lease and the announcement. What fails lapses by itself.
    pub async fn leave(&self) {
        let shared = &self.shared;
        shared.stop.cancel();
        shared.tasks.close();
        // A renewal under way is awaited: one that arrives late would begin the lease anew.
        shared.tasks.wait().await;
        if shared.me.lock().session {
            let ended = shared.in_time(shared.directory.end_lease(&shared.id)).await;
            warn_of(ended, "could not end the lease; it lapses");
            shared.lease.lock().ended();
            shared.certainty.ended();
        }
        shared.counted.lock().clear();
        let withdrawn = shared.in_time(shared.membership.withdraw(&shared.id)).await;
        warn_of(withdrawn, "could not withdraw this node; it expires");
        shared.tell_left().await;
    }

    /// Has the nodes read from the store soon: one is named that is not in the view.
    pub(crate) fn refresh_soon(&self) {
        self.shared.refresh_now.notify_one();
    }

    /// Whether a node's process was seen to be gone so recently that nothing need be tried there.
    pub(crate) fn was_gone(&self, node: &Node) -> bool {
        node.peer.was_gone(self.shared.config.lease)
    }

    /// How recently a failure must have happened to matter.
    pub(crate) fn suspicion(&self) -> Duration {
        self.shared.config.suspicion
    }
}

impl MembersInner {
    /// How often the node renews and announces itself, and how long it waits for the store to answer.
    fn beat(&self) -> Duration {
        self.config.lease / BEATS
    }

    /// Waits for the store for so long only: one that hangs is as good as away.
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
        warn_of(told, "could not tell that this node leaves");
    }
}

fn warn_of(done: Result<(), StoreError>, what: &str) {
    if let Err(error) = done {
        tracing::warn!(%error, "{what}");
    }
}
