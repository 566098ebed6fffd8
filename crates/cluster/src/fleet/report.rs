use serde::Serialize;
use shoal_ports::{NodeReport, Outcomes, PoolReport, ToolAnnotations};

/// A merged list from all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gathered<T> {
    /// The items within the limit.
    pub items: Vec<Located<T>>,
    /// Number of items on all nodes that answered.
    pub total: usize,
    /// Nodes that did not answer.
    pub unseen: Vec<Unseen>,
}

/// An item and its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located<T> {
    /// ID of the node.
    pub node: String,
    /// The item.
    #[serde(flatten)]
    pub item: T,
}

/// A node that did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// ID of the node.
    pub node: String,
    /// The reason, for people.
    pub reason: String,
}

/// All nodes' pools, workers and rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// The node that collected the reports.
    pub me: String,
    /// All nodes, by ID.
    pub nodes: Vec<NodeSeen>,
    /// All pools, by name. A pool is ready if any node says so.
    pub pools: Vec<PoolReport<WorkerSeen>>,
    /// Rates of all nodes, the oldest first.
    pub rates: Vec<RatePoint>,
    /// Lost nodes, by ID. Their rates end early.
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

/// The tools, and their calls on all nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolsSeen {
    /// The tools within the limit, by name.
    pub items: Vec<ToolSeen>,
    /// The highest number of tools on one of the nodes that answered.
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
    /// The short description.
    pub description: Option<String>,
    /// The pool.
    pub pool: String,
    /// The annotations.
    pub annotations: ToolAnnotations,
    /// Recent calls, by outcome.
    pub outcomes: Outcomes,
    /// Calls per second; `None` if some node does not count them.
    pub rate: Option<f64>,
    /// Median latency in milliseconds, if any call was answered.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
}

/// A node with its report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeSeen {
    /// The address for other nodes, or empty.
    pub address: String,
    /// Whether the node does not know all pools yet.
    pub starting: bool,
    /// Whether the announcement is valid.
    pub present: bool,
    /// Why the node did not answer. `report` then has only the facts of its announcement.
    pub trouble: Option<String>,
    /// The report without pools and rates, which the [`Overview`] merges.
    #[serde(flatten)]
    pub report: NodeReport,
}

/// A worker, merged from the reports of the nodes that answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerSeen {
    /// ID of the worker.
    pub id: String,
    /// Whether the worker accepts calls.
    pub ready: bool,
    /// Nodes with a link to the worker.
    pub reached_by: usize,
    /// Nodes that avoid the worker after failures.
    pub avoided_by: usize,
    /// Calls that run at the worker, whichever node sent them.
    pub running: usize,
    /// Calls that wait at the worker, whichever node sent them.
    pub queued: usize,
    /// Maximum concurrent calls.
    pub capacity: usize,
    /// Why the worker is not ready, or which part of it is degraded.
    pub detail: Option<String>,
}

/// The rates of one time step, of all nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// Beginning of the step, in seconds since 1970.
    pub at: u64,
    /// Requests that ended, by outcome.
    #[serde(flatten)]
    pub outcomes: Outcomes,
    /// Median latency in milliseconds, if any request was answered.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Sessions at the step's end.
    pub sessions: u64,
    /// Streams at the step's end.
    pub streams: u64,
    /// Calls in flight at the step's end.
    pub calls: u64,
}
