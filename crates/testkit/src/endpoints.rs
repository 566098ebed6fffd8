//! The edges behind a balancer, and their readiness.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use crate::admin::Admin;

/// An edge behind a balancer.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The edge's name.
    pub name: String,
    /// The address of the edge's MCP endpoint.
    pub address: SocketAddr,
    /// The admin port to poll for readiness. Without it, the edge counts as ready.
    pub admin: Option<Admin>,
}

/// When endpoints join and leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// The time between two probes.
    pub period: Duration,
    /// Consecutive failures before an endpoint is not ready. One passed probe makes it ready.
    pub failures: u32,
    /// How long a terminating endpoint still receives connections.
    pub propagation: Duration,
}

impl Default for Probing {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(2),
            failures: 2,
            propagation: Duration::from_secs(2),
        }
    }
}

/// The endpoints of a balancer, which takes them in turn.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    all: Mutex<Vec<Endpoint>>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Endpoint {
    edge: Edge,
    ready: Arc<AtomicBool>,
    _probe: Option<AbortOnDropHandle<()>>,
}

impl Endpoints {
    /// Adds an edge, and probes it.
    pub(crate) fn add(&self, edge: Edge, probing: Probing) {
        let ready = Arc::new(AtomicBool::new(edge.admin.is_none()));
        let probe = |admin| tokio::spawn(probe(admin, probing, ready.clone()));
        let probe = edge.admin.clone().map(probe);
        self.lock().push(Endpoint {
            edge,
            ready,
            _probe: probe.map(AbortOnDropHandle::new),
        });
    }

    pub(crate) fn remove(&self, name: &str) {
        self.lock().retain(|endpoint| endpoint.edge.name != name);
    }

    /// Counts the edges that are ready.
    pub(crate) fn ready(&self) -> usize {
        self.lock().iter().filter(|one| one.is_ready()).count()
    }

    /// Returns the edges in the order of the next turn: those that are ready, and the rest.
    pub(crate) fn turn(&self) -> (Vec<Edge>, Vec<Edge>) {
        let all = self.lock();
        let edges = |ready| {
            let those = all.iter().filter(move |one| one.is_ready() == ready);
            Vec::from_iter(those.map(|one| one.edge.clone()))
        };
        let (mut ready, rest) = (edges(true), edges(false));
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let first = turn.checked_rem(ready.len()).unwrap_or_default();
        ready.rotate_left(first);
        (ready, rest)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Endpoint>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }
}

async fn probe(admin: Admin, probing: Probing, ready: Arc<AtomicBool>) {
    let mut ticks = interval(probing.period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = 0;
    loop {
        ticks.tick().await;
        if admin.is_ready().await {
            failed = 0;
            ready.store(true, Ordering::Relaxed);
        } else {
            failed += 1;
            if failed >= probing.failures {
                ready.store(false, Ordering::Relaxed);
            }
        }
    }
}
