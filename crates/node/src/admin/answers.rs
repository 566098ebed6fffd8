use std::collections::BTreeSet;

use serde::Serialize;
use shoal_auth::IssuerReport;
use shoal_cluster::ClusterStatus;
use shoal_dispatch::{Conflict, PoolStatus, Status};
use shoal_session::SessionsStatus;

use crate::config::Role;
use crate::reload::ConfigurationReport;

/// The answer of `/readyz`.
#[derive(Clone, Debug, Serialize)]
pub struct Readiness {
    status: &'static str,
    reasons: Vec<String>,
    /// The pool that had a name first serves it.
    conflicts: Vec<Conflict>,
    notes: Vec<String>,
    /// `null` while the process starts.
    store: Option<StoreHealth>,
    #[serde(skip)]
    refused: bool,
}

impl Readiness {
    /// `discovered` pools need not be ready; `empty` allows a node without pools.
    pub fn of(draining: bool, status: Status, discovered: &BTreeSet<String>, empty: bool) -> Self {
        let (others, own): (Vec<_>, Vec<_>) =
            (status.pools.iter()).partition(|pool| discovered.contains(&pool.name));
        let mut reasons: Vec<String> = own.into_iter().filter_map(waits_for).collect();
        if status.pools.is_empty() && !empty {
            reasons.push("no worker has joined".to_owned());
        }
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
            notes: others.into_iter().filter_map(waits_for).collect(),
            conflicts: status.conflicts,
            store: None,
            refused: false,
        }
    }

    /// Builds the readiness of a starting process, for the reason `why`.
    pub fn not_yet(why: String) -> Self {
        Self {
            status: "not ready",
            reasons: vec![why],
            conflicts: Vec::new(),
            notes: Vec::new(),
            store: None,
            refused: false,
        }
    }

    /// Makes the node unready. [`all_the_same`](Self::all_the_same) ignores this reason.
    pub fn wait_for(&mut self, reason: &str) {
        self.reasons.push(reason.to_owned());
        if self.status == "ready" {
            self.status = "not ready";
        }
    }

    /// Makes the node unready. [`all_the_same`](Self::all_the_same) does not ignore this reason.
    pub fn refuse(&mut self, reason: String) {
        self.wait_for(&reason);
        self.refused = true;
    }

    /// Adds a problem that leaves the node ready.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds the store's health. An outage leaves nodes ready, because otherwise all of them would leave the balancer.
    pub fn see_store(&mut self, health: StoreHealth) {
        self.notes.extend(health.trouble.clone());
        self.store = Some(health);
    }

    /// Turns the reasons into notes, unless `refuse` added one.
    pub fn all_the_same(mut self) -> Self {
        if self.refused {
            return self;
        }
        self.notes.append(&mut self.reasons);
        self.status = "ready";
        self
    }

    /// Whether the node wants traffic.
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns why the node wants no traffic.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

fn waits_for(pool: &PoolStatus) -> Option<String> {
    // A node stays ready while a pool's workers are briefly gone, and while pools are removed or
    // unnamed.
    if pool.ready || pool.lingering || pool.removed || pool.unnamed {
        return None;
    }
    let detail = pool
        .workers
        .iter()
        .find_map(|worker| worker.detail.as_deref());
    let detail = detail.unwrap_or("it has no worker");
    Some(format!("pool {} is not ready: {detail}", pool.name))
}

/// The answer of `/status`.
#[derive(Clone, Debug, Serialize)]
pub struct StatusReport {
    /// Shoal's version.
    pub version: &'static str,
    /// The node's name.
    pub node: String,
    /// The node's roles.
    pub roles: Vec<Role>,
    /// Seconds since the node started.
    pub uptime_seconds: u64,
    /// Whether the node is shutting down.
    pub draining: bool,
    /// Lower bound of the difference between this process's clock and a linked process's, in ms: the largest of all
    /// links. `null` while unknown.
    pub clock_skew_ms: Option<u64>,
    /// Nodes, this node's lease, and session owners; `null` for a single process or a worker.
    pub cluster: Option<ClusterStatus>,
    /// Legacy sessions and streams; `null` without the session role.
    pub sessions: Option<SessionsStatus>,
    /// Requests and streams; `null` without the edge role.
    pub edge: Option<EdgeReport>,
    /// The authorization servers; `null` unless `auth.mode` is `oauth`.
    pub issuers: Option<Vec<IssuerReport>>,
    /// The configuration.
    pub configuration: ConfigurationReport,
    /// The store.
    pub store: StoreReport,
    /// Pools with their workers, and waiting calls.
    #[serde(flatten)]
    pub dispatch: Status,
}

/// The load of an edge.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EdgeReport {
    /// Requests under way, including streamed answers.
    pub requests: usize,
    /// Clients' open streams.
    pub streams: usize,
    /// Open WebSockets.
    pub websockets: u64,
}

/// Whether a store can serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreHealth {
    /// The kind of store.
    pub kind: &'static str,
    /// Why the store cannot serve; `null` while it can.
    pub trouble: Option<String>,
}

/// The store's state.
#[derive(Clone, Debug, Serialize)]
pub struct StoreReport {
    /// Whether the store serves this node.
    #[serde(flatten)]
    pub health: StoreHealth,
    /// Bytes of events kept for clients that resume (embedded store).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_bytes: Option<usize>,
    /// Connections and commands (Redis).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<shoal_store_redis::RedisStatus>,
}
