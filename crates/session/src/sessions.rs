//! The gateway: finds, opens, wakes, bounds and ends the sessions of this node.

mod answered;
mod deliver;
mod gauges;
mod inspect;
mod leaving;
mod lifecycle;
mod listen;
mod locks;
mod node;
mod ownership;
mod patience;
mod places;
mod renew;
mod repeated;
mod subscribe;
mod sweep;
mod table;
mod taking_over;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{
    Delivered, Dispatcher, EventStream, GatewayError, Liveness, NodeId, OpenSession, Opened, Post,
    SessionGateway, SessionRef, Store, StoreError,
};
use shoal_protocol::EventId;
use shoal_telemetry::metrics::Registration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use deliver::{ATTEMPTS, Begun};
pub(crate) use leaving::Leave;
pub(crate) use locks::Alone;
pub(crate) use node::{About, Node};
pub(crate) use table::Passive;
pub(crate) use taking_over::TakingOver;

use crate::announce::announce;
use crate::config::SessionConfig;
use crate::task_lists::{adopt_tasks, keep_list};
use crate::task_news::publish_task_news;

/// The sessions of this node; implements [`SessionGateway`]. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    node: Arc<Node>,
    stop: CancellationToken,
    tasks: TaskTracker,
    _gauges: Arc<[Registration]>,
}

/// Counts of a node's sessions and streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SessionsStatus {
    /// Sessions in memory.
    pub live: usize,
    /// Passivated sessions, of which the store knows the rest.
    pub passive: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Journaled calls that have not ended, here at least.
    pub journaled: usize,
    /// Messages that actors have yet to do.
    pub waiting: usize,
    /// Subscriptions to resources, each session's counted.
    pub subscriptions: usize,
    /// Places of sessions that are taken: those of the live and the passivated ones, and of those being opened.
    pub reserved: usize,
    /// Connections that read a stream.
    pub streams: usize,
    /// Streams resumed since the start.
    pub resumed: usize,
    /// Resumes refused since the start because history was gone.
    pub history_gone: usize,
    /// Connections cut since the start because they did not read.
    pub cut: usize,
    /// Sessions taken over from other nodes since the start.
    pub taken_over: usize,
    /// Sessions given to other nodes since the start.
    pub handed_over: usize,
    /// Sessions since the start that other nodes had claimed before this one noticed.
    pub lost: usize,
    /// Calls resumed since the start that another node had begun.
    pub resumed_calls: usize,
}

/// Sessions that were given to other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// How many.
    pub sessions: usize,
    /// How long half of them, at most, were kept from working here until others could claim them.
    pub median: Duration,
    /// The longest of these times.
    pub longest: Duration,
}

impl Sessions {
    /// Starts the session role of `node`: the background tasks run until [`Sessions::stop`].
    pub fn start(
        config: SessionConfig,
        store: Store,
        dispatcher: Arc<dyn Dispatcher>,
        node: NodeId,
    ) -> Self {
        let node = Node::new(config, store, dispatcher, node);
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(announce(node.clone(), stop.clone()));
        tasks.spawn(sweep::sweep(node.clone(), stop.clone()));
        tasks.spawn(publish_task_news(node.clone(), stop.clone()));
        tasks.spawn(keep_list(node.clone(), stop.clone()));
        tasks.spawn(adopt_tasks(node.clone(), stop.clone()));
        let gauges = gauges::observe(&node).into();
        Self {
            node,
            stop,
            tasks,
            _gauges: gauges,
        }
    }

    /// Asks `liveness` from now on whether this node's sessions are certainly its own, and who of the others is gone.
    /// Only the first call counts. Without it no session is taken from a lease that lives.
    pub fn rely_on(&self, liveness: Arc<dyn Liveness>) {
        // Only the first call counts.
        let _ = self.node.liveness.set(liveness);
    }

    /// What the node holds now.
    pub fn status(&self) -> SessionsStatus {
        self.node.status()
    }

    /// Begins to drain: connections that read a standalone stream are told when to come back and closed,
    /// new ones too. Requests are still served, and calls end on the connections that wait for them.
    pub fn drain_streams(&self) {
        self.node.drain_streams();
    }

    /// Gives every session to whichever node is asked for it next: records are stored, connections are
    /// told that the session has moved, and running calls stay with their workers. New sessions and
    /// claims are refused with `Moved` from now on. Returns how many sessions were given up, and how long
    /// that took; passivated sessions follow when the node's lease ends.
    pub async fn hand_over(&self) -> HandedOver {
        self.node.hand_over().await
    }

    /// Asks the store which sessions this node still owns, and lets go of the others. To be called when
    /// the node's lease may have lapsed, or others may have claimed from it.
    ///
    /// # Errors
    /// When the store cannot say; then everything stays as it is.
    pub async fn revalidate(&self) -> Result<(), StoreError> {
        self.node.revalidate().await
    }

    /// Gives every session up, with its record stored, and ends the background tasks.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.node.passivate_all().await;
    }
}

#[async_trait]
impl SessionGateway for Sessions {
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        self.node.open(open).await
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        self.node.deliver(to, post).await
    }

    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        self.node.listen(to, cursor).await
    }

    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        self.node.close(to).await
    }
}
