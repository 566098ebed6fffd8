//! What the nodes said, put together.

use serde::Serialize;
use shoal_ports::{NodeReport, Outcomes, PoolReport, ToolAnnotations};

/// Parts of lists from all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gathered<T> {
    /// What fits within the limit, each with its node.
    pub items: Vec<Located<T>>,
    /// How many there are in all, on the nodes that answered.
    pub total: usize,
    /// Nodes that did not answer.
    pub unseen: Vec<Unseen>,
}

/// Something and the node that told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located<T> {
    /// The node's id.
    pub node: String,
    /// What it told.
    #[serde(flatten)]
    pub item: T,
}

/// A node that did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The node's id.
    pub node: String,
    /// Why, for people.
    pub reason: String,
}

/// The nodes with their pools, workers and rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// The node that was asked.
    pub me: String,
    /// All nodes, by id.
    pub nodes: Vec<NodeSeen>,
    /// All pools, by name. One is ready if it is so for some node; its workers are ordered by id.
    pub pools: Vec<PoolReport<WorkerSeen>>,
    /// Rates of all nodes together, the oldest first.
    pub rates: Vec<RatePoint>,
    /// Nodes whose part in the rates ends before the last of these, by id.
    pub lost: Vec<LostNode>,
}

/// A node that does not answer, or is no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostNode {
    /// The node's id.
    pub node: String,
    /// The beginning of the last step that is known of it, in seconds since 1970; `None` when none is.
    pub until: Option<u64>,
}

/// Tools with their calls at all nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolsSeen {
    /// What fits within the limit, by name.
    pub items: Vec<ToolSeen>,
    /// How many there are in all.
    pub total: usize,
    /// Nodes that did not answer.
    pub unseen: Vec<Unseen>,
}

/// A tool with its calls at all nodes, within the last minutes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSeen {
    /// The name that clients call.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// A short description of the tool.
    pub description: Option<String>,
    /// The pool that serves it.
    pub pool: String,
    /// What it says of itself.
    pub annotations: ToolAnnotations,
    /// How its calls ended.
    pub outcomes: Outcomes,
    /// Calls that ended, per second; `None` where a node does not count those of this tool.
    pub rate: Option<f64>,
    /// Half were answered within this many milliseconds; `None` when none was.
    pub p50_ms: Option<f64>,
    /// All but one in twenty.
    pub p95_ms: Option<f64>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeSeen {
    /// Where other nodes dial it; empty for a process that nobody dials.
    pub address: String,
    /// Whether it has just started and has yet to learn what there is.
    pub starting: bool,
    /// Whether its announcement lives.
    pub present: bool,
    /// Why it did not answer; of its report there is only what it has announced then.
    pub trouble: Option<String>,
    /// What it says of itself. Its pools and rates are among those of the [`Overview`].
    #[serde(flatten)]
    pub report: NodeReport,
}

/// A worker, as the nodes that answered know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerSeen {
    /// Its id.
    pub id: String,
    /// Whether it takes calls, as it says.
    pub ready: bool,
    /// Nodes whose way to it is open.
    pub reached_by: usize,
    /// Nodes that keep calls from it because too many failed.
    pub avoided_by: usize,
    /// Calls running, for all nodes.
    pub running: usize,
    /// Calls waiting, for all nodes.
    pub queued: usize,
    /// Calls that can run at once.
    pub capacity: usize,
    /// Why it is not ready, or what is degraded.
    pub detail: Option<String>,
}

/// What happened within a step of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// The step's beginning, in seconds since 1970.
    pub at: u64,
    /// Requests that ended.
    #[serde(flatten)]
    pub outcomes: Outcomes,
    /// Half were answered within this many milliseconds; `None` when none was.
    pub p50_ms: Option<f64>,
    /// All but one in twenty.
    pub p95_ms: Option<f64>,
    /// All but one in a hundred.
    pub p99_ms: Option<f64>,
    /// Sessions at its end.
    pub sessions: u64,
    /// Streams at its end.
    pub streams: u64,
    /// Calls in flight at its end.
    pub calls: u64,
}
