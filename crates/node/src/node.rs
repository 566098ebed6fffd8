//! A node: its parts, built in order and wired together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use axum::Router;
use shoal_dispatch::{Dispatch, Status};
use shoal_edge::{Edge, Load};
use shoal_ports::memory::MemoryStore;
use shoal_ports::{Authenticator, NodeId, Store};
use shoal_session::Sessions;
use shoal_worker::WorkerRuntime;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admin::{EdgeReport, Observed, Readiness, StatusReport, StoreReport};
use crate::config::{MEMORY, Settings};
use crate::lease::Lease;
use crate::roles;

/// A node whose parts run. Nothing is bound to a socket yet.
pub struct Node {
    pub(crate) settings: Settings,
    pub(crate) dispatch: Dispatch,
    pub(crate) workers: Vec<Arc<WorkerRuntime>>,
    pub(crate) sessions: Sessions,
    pub(crate) lease: Lease,
    pub(crate) watch: Arc<Watch>,
    store: Store,
}

/// What can be seen of a node while it runs and while it ends.
pub(crate) struct Watch {
    pub(crate) load: Load,
    pub(crate) drain: CancellationToken,
    pub(crate) sessions: Sessions,
    pub(crate) dispatch: Dispatch,
    leaving: AtomicBool,
    memory: MemoryStore,
    node: NodeId,
    started: Instant,
}

impl Node {
    /// Builds the parts: store, dispatcher, workers, sessions.
    ///
    /// # Errors
    /// When a part cannot be built from its settings, or the store cannot be reached.
    pub async fn build(settings: Settings) -> anyhow::Result<Self> {
        let id = node_id(&settings);
        let (memory, store) = roles::memory_store(&settings);
        let lease = settings.node.lease.get();
        let lease = Lease::begin(Arc::clone(&store.directory), id.clone(), lease)
            .await
            .context("cannot take the node's lease")?;
        let dispatch = roles::dispatch(&settings, &store)?;
        let workers = roles::workers(&settings, &id).await;
        for worker in &workers {
            dispatch.add_worker(worker.clone());
        }
        let sessions = roles::sessions(&settings, store.clone(), &dispatch, id.clone());
        let watch = Arc::new(Watch {
            load: Load::default(),
            drain: CancellationToken::new(),
            sessions: sessions.clone(),
            dispatch: dispatch.clone(),
            leaving: AtomicBool::new(false),
            memory,
            node: id,
            started: Instant::now(),
        });
        Ok(Self {
            settings,
            dispatch,
            workers,
            sessions,
            lease,
            watch,
            store,
        })
    }

    /// The edge's router for callers whom `authenticator` names.
    pub fn router(&self, authenticator: Arc<dyn Authenticator>) -> Router {
        roles::edge_router(Edge {
            gateway: Arc::new(self.sessions.clone()),
            dispatcher: Arc::new(self.dispatch.clone()),
            bus: Arc::clone(&self.store.bus),
            authenticator,
            config: roles::edge_config(&self.settings),
            drain: self.watch.drain.clone(),
            load: self.watch.load.clone(),
        })
    }
}

/// The configured name, or one that no other process has.
fn node_id(settings: &Settings) -> NodeId {
    match &settings.node.name {
        Some(name) => NodeId::new(name.as_str()),
        None => {
            let random = uuid::Uuid::new_v4().simple().to_string();
            NodeId::new(&random[..12])
        }
    }
}

impl Watch {
    /// From now on the node says that it wants no traffic.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Requests that have not been answered.
    pub(crate) fn unanswered(&self) -> usize {
        // A legacy request counts at both; one that waits for a client's answer may have lost its
        // connection and counts at the session alone.
        self.load
            .requests_in_flight()
            .max(self.sessions.status().in_flight)
    }

    /// Who is still busy, for the log: pools with their calls.
    pub(crate) fn busy(&self) -> Vec<String> {
        let status: Status = self.dispatch.status();
        status
            .pools
            .iter()
            .filter_map(|pool| {
                let running: usize = pool.workers.iter().map(|worker| worker.running).sum();
                let queued: usize = pool.workers.iter().map(|worker| worker.queued).sum();
                (running + queued > 0)
                    .then(|| format!("pool {}: {running} running, {queued} waiting", pool.name))
            })
            .collect()
    }
}

impl Observed for Watch {
    fn readiness(&self) -> Readiness {
        Readiness::of(self.leaving.load(Ordering::Relaxed), self.dispatch.status())
    }

    fn report(&self) -> StatusReport {
        let status = self.dispatch.status();
        StatusReport {
            version: env!("CARGO_PKG_VERSION"),
            node: self.node.to_string(),
            uptime_seconds: self.started.elapsed().as_secs(),
            draining: self.leaving.load(Ordering::Relaxed),
            sessions: self.sessions.status(),
            edge: EdgeReport {
                requests: self.load.requests_in_flight(),
                streams: self.load.open_streams(),
            },
            store: StoreReport {
                kind: MEMORY,
                event_bytes: self.memory.event_bytes(),
            },
            pools: status.pools,
            conflicts: status.conflicts,
            degraded: status.degraded,
            parked: status.parked,
            subscriptions: status.subscriptions,
        }
    }
}
