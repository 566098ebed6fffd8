//! What the admin port says, as JSON.

use serde::Serialize;
use shoal_dispatch::{Conflict, Degraded, PoolStatus, Status};
use shoal_session::SessionsStatus;

/// `/readyz`
#[derive(Clone, Debug, Serialize)]
pub struct Readiness {
    status: &'static str,
    /// What keeps the node from traffic, for people.
    reasons: Vec<String>,
    /// What two pools both claim. Served all the same: the pool that comes first by name wins.
    conflicts: Vec<Conflict>,
}

impl Readiness {
    /// Judges by the pools, unless the node is on its way out.
    pub fn of(draining: bool, status: Status) -> Self {
        let mut reasons: Vec<String> = status.pools.iter().filter_map(waits_for).collect();
        if draining {
            reasons.insert(0, "the node is shutting down".to_owned());
        }
        Self {
            status: match (draining, reasons.is_empty()) {
                (true, _) => "draining",
                (false, false) => "not ready",
                (false, true) => "ready",
            },
            reasons,
            conflicts: status.conflicts,
        }
    }

    /// Whether the node wants traffic.
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }

    /// What keeps it from that.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

/// Why a pool takes no calls.
fn waits_for(pool: &PoolStatus) -> Option<String> {
    if pool.ready {
        return None;
    }
    let detail = pool
        .workers
        .iter()
        .find_map(|worker| worker.detail.as_deref());
    let detail = detail.unwrap_or("it has no worker");
    Some(format!("pool {} is not ready: {detail}", pool.name))
}

/// `/status`
#[derive(Clone, Debug, Serialize)]
pub struct StatusReport {
    /// Shoal's version.
    pub version: &'static str,
    /// The node's name.
    pub node: String,
    /// Seconds since the node started.
    pub uptime_seconds: u64,
    /// Whether it is on its way out.
    pub draining: bool,
    /// Legacy sessions and their streams.
    pub sessions: SessionsStatus,
    /// What the edge carries.
    pub edge: EdgeReport,
    /// What the embedded store holds.
    pub store: StoreReport,
    /// Pools with their workers.
    pub pools: Vec<PoolStatus>,
    /// What two pools both claim.
    pub conflicts: Vec<Conflict>,
    /// Tools that are served with a part of their description unused.
    pub degraded: Vec<Degraded>,
    /// Calls that wait for a modern client's answers.
    pub parked: usize,
    /// Resources that somebody is subscribed to.
    pub subscriptions: usize,
}

/// What the edge carries.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EdgeReport {
    /// Requests under way, streamed answers included.
    pub requests: usize,
    /// Streams that clients hold open.
    pub streams: usize,
}

/// What the embedded store holds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StoreReport {
    /// Which store.
    pub kind: &'static str,
    /// Bytes of events kept for clients that resume.
    pub event_bytes: usize,
}
