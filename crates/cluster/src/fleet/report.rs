//! The merged reports of all nodes.

use serde::Serialize;
use shoal_ports::{NodeReport, Outcomes, PoolReport, ToolAnnotations};

/// A merged list from all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gathered<T> {
    /// The items within the limit.
    pub items: Vec<Located<T>>,
    /// Number on all nodes that answered.
    pub total: usize,
    /// Nodes that did not answer.
    pub unseen: Vec<Unseen>,
}

/// An item with the node that reported it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located<T> {
    /// ID of the node.
    pub node: String,
    /// The reported item.
    #[serde(flatten)]
    pub item: T,
}

/// A node that did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// ID of the node.
    pub node: String,
    /// Why the node did not answer, for people.
    pub reason: String,
}

/// The nodes with their pools, workers and rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// The node that collected the answers.
    pub me: String,
    /// All nodes, by ID.
    pub nodes: Vec<NodeSeen>,
    /// All pools, by name; ready if any node says so.
    pub pools: Vec<PoolReport<WorkerSeen>>,
    /// Rates of all nodes, oldest first.
    pub rates: Vec<RatePoint>,
    /// Nodes whose rates end early, by ID.
    pub lost: Vec<LostNode>,
}

/// A node that does not answer or has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostNode {
    /// ID of the node.
    pub node: String,
    /// Beginning of the last known step, in seconds since 1970.
    pub until: Option<u64>,
}

/// Tools with their calls on all nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolsSeen {
    /// The tools within the limit, by name.
    pub items: Vec<ToolSeen>,
    /// Number on all nodes that answered.
    pub total: usize,
    /// Nodes that did not answer.
    pub unseen: Vec<Unseen>,
}

/// A tool with its recent calls on all nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSeen {
    /// The name that clients call.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// Short description.
    pub description: Option<String>,
    /// The pool that serves the tool.
    pub pool: String,
    /// The tool's annotations.
    pub annotations: ToolAnnotations,
    /// How the calls ended.
    pub outcomes: Outcomes,
    /// Calls per second; `None` if some node does not count them.
    pub rate: Option<f64>,
    /// Median in milliseconds, if any call was answered.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
}

/// A node with its report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeSeen {
    /// Address for other nodes, or empty.
    pub address: String,
    /// Whether the node does not know all pools yet.
    pub starting: bool,
    /// Whether the announcement is valid.
    pub present: bool,
    /// Why the node did not answer. `report` then has only its announcement.
    pub trouble: Option<String>,
    /// The report without its pools and rates, which the [`Overview`] merges.
    #[serde(flatten)]
    pub report: NodeReport,
}

/// A worker, as the nodes that answered see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerSeen {
    /// ID of the worker.
    pub id: String,
    /// Whether the worker accepts calls.
    pub ready: bool,
    /// Nodes linked to the worker.
    pub reached_by: usize,
    /// Nodes that avoid the worker after failures.
    pub avoided_by: usize,
    /// Running calls of all nodes.
    pub running: usize,
    /// Queued calls of all nodes.
    pub queued: usize,
    /// Maximum number of concurrent calls.
    pub capacity: usize,
    /// Why the worker is not ready, or what is degraded.
    pub detail: Option<String>,
}

/// The requests of one step of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// Beginning of the step, in seconds since 1970.
    pub at: u64,
    /// How requests ended.
    #[serde(flatten)]
    pub outcomes: Outcomes,
    /// Median in milliseconds, if any request was answered.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Sessions at its end.
    pub sessions: u64,
    /// Streams at its end.
    pub streams: u64,
    /// Calls in flight at its end.
    pub calls: u64,
}
