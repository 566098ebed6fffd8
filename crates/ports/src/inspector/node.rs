//! What operators see of a node.

use serde::{Deserialize, Serialize};

use super::Step;

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeReport {
    /// Its id.
    pub id: String,
    /// The release that it runs.
    pub version: String,
    /// What it does: `edge`, `session`, `worker`.
    pub roles: Vec<String>,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
    /// Whether it is on its way out.
    pub draining: bool,
    /// What keeps it from traffic; empty when it is ready.
    pub waits_for: Vec<String>,
    /// Why the store does not serve this node; `None` while it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_trouble: Option<String>,
    /// Sessions in memory.
    pub live_sessions: usize,
    /// Sessions that sleep in the store.
    pub sleeping_sessions: usize,
    /// Streams that clients hold open at its edge.
    pub streams: usize,
    /// Requests that its edge has under way.
    pub requests: usize,
    /// Calls in flight.
    pub calls: usize,
    /// Calls that wait for a modern client's answers.
    pub parked: usize,
    /// Pools with their workers, as the node knows them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolReport>,
    /// Rates of the last minutes, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Rates of nodes that are gone, as far as this one has heard of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<Remembered>,
}

/// What a node remembers of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// The other node's id.
    pub node: String,
    /// Its rates, the oldest first.
    pub steps: Vec<Step>,
}

/// A pool, with what is known of each of its workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolReport<W = WorkerReport> {
    /// Its name.
    pub name: String,
    /// Whether a worker takes calls.
    pub ready: bool,
    /// Tools that it serves.
    pub tools: usize,
    /// Prompts that it serves.
    pub prompts: usize,
    /// Resources and resource templates that it serves.
    pub resources: usize,
    /// What could have been a tool and is not, and why.
    pub left_out: Vec<String>,
    /// Tools whose schemas are listed in less detail than their backend has, and how.
    pub cut: Vec<String>,
    /// Its workers.
    pub workers: Vec<W>,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerReport {
    /// Its id.
    pub id: String,
    /// Whether it takes calls, as it says.
    pub ready: bool,
    /// Whether the way to it is open.
    pub reachable: bool,
    /// Whether calls are kept from it because too many failed.
    pub circuit_open: bool,
    /// Calls running, for all nodes.
    pub running: usize,
    /// Calls waiting, for all nodes.
    pub queued: usize,
    /// Calls that can run at once.
    pub capacity: usize,
    /// Why it is not ready, or what is degraded.
    pub detail: Option<String>,
}
