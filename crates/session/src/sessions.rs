mod answered;
mod deliver;
mod gauges;
mod inspect;
mod leave_kind;
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
mod session_facts;
mod subscribe;
mod sweep;
mod table;
mod taking_over;
mod tasks;
mod until_over;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{
    AdoptCall, Delivered, Dispatcher, EventStream, GatewayError, Liveness, NodeId, OpenSession,
    Opened, Post, SessionGateway, SessionId, SessionRef, SessionTasks, Store, StoreError,
    TaskRequest,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId};
use shoal_telemetry::metrics::Registration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use deliver::{ATTEMPTS, BegunBatch};
pub(crate) use leave_kind::LeaveKind;
pub(crate) use locks::Alone;
pub(crate) use node::Node;
pub(crate) use session_facts::SessionFacts;
pub(crate) use table::Passive;
pub(crate) use taking_over::TakingOver;

use crate::announce::announce;
use crate::config::SessionConfig;
use crate::task_adoption::{adopt_tasks, keep_list};

/// The gateway that finds, opens, wakes, limits and ends this node's sessions. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    node: Arc<Node>,
    stop: CancellationToken,
    tasks: TaskTracker,
    _gauges: Arc<[Registration]>,
}

/// A node's present sessions and streams, and counts of events since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SessionsStatus {
    /// Sessions in memory.
    pub live: usize,
    /// Passivated sessions.
    pub passive: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Open journaled calls.
    pub journaled: usize,
    /// Messages waiting for actors.
    pub waiting: usize,
    /// Subscriptions of all sessions.
    pub subscriptions: usize,
    /// Places taken by live, passivated and opening sessions.
    pub reserved: usize,
    /// Connections that read a stream.
    pub streams: usize,
    /// Streams that clients resumed.
    pub resumed: usize,
    /// Resumptions refused because the log lacks the client's position.
    pub history_gone: usize,
    /// Connections closed because their clients did not read.
    pub cut: usize,
    /// Sessions taken over.
    pub taken_over: usize,
    /// Sessions handed over.
    pub handed_over: usize,
    /// Sessions that another node claimed unnoticed.
    pub lost: usize,
    /// Calls resumed after a take-over.
    pub resumed_calls: usize,
}

/// The outcome of [`Sessions::hand_over`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// Sessions handed over.
    pub sessions: usize,
    /// The median unavailability of a session.
    pub median: Duration,
    /// The longest unavailability of a session.
    pub longest: Duration,
}

impl Sessions {
    /// Starts the session role of `node`. Background tasks run until [`Sessions::stop`].
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

    /// Sets the source of evidence on leases and nodes. Only the first call counts. Without a
    /// source, this node takes over no session whose owner has a live lease.
    pub fn rely_on(&self, liveness: Arc<dyn Liveness>) {
        let _ = self.node.liveness.set(liveness);
    }

    /// Returns the current counts.
    pub fn status(&self) -> SessionsStatus {
        self.node.status()
    }

    /// Closes standalone streams, also later ones, and tells their clients when to reconnect.
    /// Requests are still served.
    pub fn drain_streams(&self) {
        self.node.drain_streams();
    }

    /// Stores live sessions and releases them to other nodes. Running calls stay at their workers.
    /// New sessions and claims then get `Moved`. Other nodes get passivated sessions when this
    /// node's lease ends.
    pub async fn hand_over(&self) -> HandedOver {
        self.node.hand_over().await
    }

    /// Drops sessions that the store assigns to another node. Call this when the node's lease may have lapsed.
    ///
    /// # Errors
    /// If the store cannot answer. This node then keeps all sessions.
    pub async fn revalidate(&self) -> Result<(), StoreError> {
        self.node.revalidate().await
    }

    /// Stores and releases every session and ends the background tasks.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.node.release_all().await;
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

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        Ok(SessionId::of_task_opened_by(&self.node.id))
    }

    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        self.node.adopt_call(to, call).await
    }

    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError> {
        self.node.ask_task(to, request).await
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        self.node.until_over(to, requests).await
    }

    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        self.node.tasks_of(session).await
    }
}
