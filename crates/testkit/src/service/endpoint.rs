use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::{MissedTickBehavior, interval};

use super::Probing;
use crate::round_robin::Edge;

#[derive(Debug)]
pub(super) struct Endpoint {
    edge: Edge,
    ready: AtomicBool,
    left: AtomicBool,
}

impl Endpoint {
    pub(super) fn new(edge: Edge) -> Self {
        Self {
            edge,
            ready: AtomicBool::new(false),
            left: AtomicBool::new(false),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.edge.name
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.edge.address
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    /// Probes the endpoint until it leaves. Without an admin port, every probe passes.
    pub(super) async fn probe(self: std::sync::Arc<Self>, probing: Probing) {
        let mut ticks = interval(probing.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut passed, mut failed) = (0, 0);
        while !self.left.load(Ordering::Relaxed) {
            ticks.tick().await;
            let passes = match &self.edge.admin {
                Some(admin) => admin.is_ready().await,
                None => true,
            };
            (passed, failed) = match passes {
                true => (passed + 1, 0),
                false => (0, failed + 1),
            };
            if passed >= probing.successes {
                self.ready.store(true, Ordering::Relaxed);
            } else if failed >= probing.failures {
                self.ready.store(false, Ordering::Relaxed);
            }
        }
    }
}
