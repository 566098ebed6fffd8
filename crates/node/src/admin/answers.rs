//! What the admin port says, as JSON.

use std::collections::BTreeSet;

use serde::Serialize;
use shoal_auth::IssuerReport;
use shoal_cluster::ClusterStatus;
use shoal_dispatch::{Conflict, PoolStatus, Status};
use shoal_session::SessionsStatus;

use crate::config::Role;
use crate::reload::ConfigurationReport;

/// `/readyz`
#[derive(Clone, Debug, Serialize)]
pub struct Readiness {
    status: &'static str,
    /// What keeps the node from traffic, for people.
    reasons: Vec<String>,
    /// What two pools both claim. Served all the same: the pool that comes first by name wins.
    conflicts: Vec<Conflict>,
    /// What else is wrong, without keeping the node from traffic.
    notes: Vec<String>,
    /// Whether the store serves the node; `null` for a process that starts.
    store: Option<StoreHealth>,
    /// Whether one of the reasons counts for a node that has served too.
    #[serde(skip)]
    refused: bool,
}

impl Readiness {
    /// Judges by the pools, unless the node is on its way out. It can do without `discovered` ones, and without any where `empty` is as it should be.
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

    /// Of a process that is not a node yet, and why.
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

    /// Something that keeps the node from traffic.
    pub fn wait_for(&mut self, reason: &str) {
        self.reasons.push(reason.to_owned());
        if self.status == "ready" {
            self.status = "not ready";
        }
    }

    /// Something that keeps the node from traffic, whether or not it has served before.
    pub fn refuse(&mut self, reason: String) {
        self.wait_for(&reason);
        self.refused = true;
    }

    /// Something that operators should know although the node serves.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// How the store is. A store that is away is noted and takes no node out of its balancer: it would take all of them.
    pub fn see_store(&mut self, health: StoreHealth) {
        self.notes.extend(health.trouble.clone());
        self.store = Some(health);
    }

    /// Ready in spite of its reasons, which become notes, unless one counts all the same.
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

    /// What keeps it from that.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

/// Why a pool takes no calls.
fn waits_for(pool: &PoolStatus) -> Option<String> {
    // One whose workers have just gone refuses its calls for a while; the node itself is well.
    // Neither does one that is not to be there any more, or not yet.
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

/// `/status`
#[derive(Clone, Debug, Serialize)]
pub struct StatusReport {
    /// Shoal's version.
    pub version: &'static str,
    /// The node's name.
    pub node: String,
    /// What it does.
    pub roles: Vec<Role>,
    /// Seconds since the node started.
    pub uptime_seconds: u64,
    /// Whether it is on its way out.
    pub draining: bool,
    /// By how many milliseconds its clock differs at least from that of the linked process that is furthest from it;
    /// `null` while no other is known.
    pub clock_skew_ms: Option<u64>,
    /// The nodes, this one's lease, and the way to the sessions' owners; `null` for a process that is
    /// the whole server, or has workers alone.
    pub cluster: Option<ClusterStatus>,
    /// Legacy sessions and their streams; `null` without the role.
    pub sessions: Option<SessionsStatus>,
    /// What the edge carries; `null` without the role.
    pub edge: Option<EdgeReport>,
    /// What is known of the authorization servers; `null` unless `auth.mode` is `oauth`.
    pub issuers: Option<Vec<IssuerReport>>,
    /// How the configuration is.
    pub configuration: ConfigurationReport,
    /// How the store is.
    pub store: StoreReport,
    /// Pools with their workers, and what calls wait for.
    #[serde(flatten)]
    pub dispatch: Status,
}

/// What the edge carries.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EdgeReport {
    /// Requests under way, streamed answers included.
    pub requests: usize,
    /// Streams that clients hold open.
    pub streams: usize,
    /// Those of them that are WebSockets.
    pub websockets: u64,
}

/// Whether the store serves a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreHealth {
    /// Which store.
    pub kind: &'static str,
    /// Why it does not; `null` while it does.
    pub trouble: Option<String>,
}

/// How the store is.
#[derive(Clone, Debug, Serialize)]
pub struct StoreReport {
    /// Whether it serves this node.
    #[serde(flatten)]
    pub health: StoreHealth,
    /// The embedded store: bytes of events kept for clients that resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_bytes: Option<usize>,
    /// Redis: connections and commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<shoal_store_redis::RedisStatus>,
}
