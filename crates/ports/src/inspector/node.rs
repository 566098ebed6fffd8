use serde::{Deserialize, Serialize};

use super::Step;

/// A node as operators see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeReport {
    /// The node's id.
    pub id: String,
    /// The node's release.
    pub version: String,
    /// The roles: `edge`, `session`, `worker`.
    pub roles: Vec<String>,
    /// Milliseconds since the node started.
    pub uptime_ms: u64,
    /// Whether the node gets no new work.
    pub draining: bool,
    /// Conditions that the node must meet before it is ready.
    pub waits_for: Vec<String>,
    /// Why the store does not serve this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_trouble: Option<String>,
    /// Sessions in memory.
    pub live_sessions: usize,
    /// Sessions passivated in the store.
    pub sleeping_sessions: usize,
    /// Streams that clients hold open at this edge.
    pub streams: usize,
    /// Requests in progress at this edge.
    pub requests: usize,
    /// Calls in flight.
    pub calls: usize,
    /// Calls that wait for a modern client's answers.
    pub parked: usize,
    /// The pools that the node knows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolReport>,
    /// Recent rates, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Rates of nodes that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<Remembered>,
}

/// A node's record of the rates of another node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// The other node's id.
    pub node: String,
    /// The rates, the oldest first.
    pub steps: Vec<Step>,
}

/// A pool and its workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolReport<W = WorkerReport> {
    /// The pool's name.
    pub name: String,
    /// Whether a worker of the pool accepts calls.
    pub ready: bool,
    /// Number of tools.
    pub tools: usize,
    /// Number of prompts.
    pub prompts: usize,
    /// Number of resources and resource templates.
    pub resources: usize,
    /// OpenAPI operations that could not become tools, and why.
    pub left_out: Vec<String>,
    /// Tools whose listed schemas are shortened, and how.
    pub cut: Vec<String>,
    /// The pool's workers.
    pub workers: Vec<W>,
}

/// A worker as a node knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerReport {
    /// The worker's id.
    pub id: String,
    /// Whether the worker accepts calls.
    pub ready: bool,
    /// Whether this node has a connection to the worker.
    pub reachable: bool,
    /// Whether the circuit breaker keeps calls away.
    pub circuit_open: bool,
    /// Running calls, from all nodes.
    pub running: usize,
    /// Waiting calls, from all nodes.
    pub queued: usize,
    /// Calls that can run at once.
    pub capacity: usize,
    /// Why the worker is not ready, or which part of it is degraded.
    pub detail: Option<String>,
}
