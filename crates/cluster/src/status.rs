use serde::Serialize;
use shoal_ports::NodeInfo;

use crate::members::{LeaseStatus, Members};
use crate::view::Node;

/// The cluster as this node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterStatus {
    /// ID of this node.
    pub node: String,
    /// All nodes, including this one, by ID.
    pub nodes: Vec<NodeStatus>,
    /// This node's lease; `None` without the session role.
    pub lease: Option<LeaseStatus>,
    /// Counters of routing.
    pub routing: RoutingStatus,
}

/// A node with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// The node's announcement. Here, a starting node does not count as draining.
    #[serde(flatten)]
    pub info: NodeInfo,
    /// Whether the announcement is valid.
    pub present: bool,
    /// Whether the last attempt to reach the node succeeded. True before the first attempt.
    pub reachable: bool,
}

/// Counts of routing to session owners since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoutingStatus {
    /// Cached owners.
    pub cached_owners: usize,
    /// Messages sent again.
    pub redelivered: u64,
    /// Streams resumed at another node or link.
    pub reattached: u64,
    /// Streams that could not be resumed.
    pub lost_streams: u64,
    /// Messages and streams through a relay.
    pub relayed: u64,
    /// Messages and streams that found no owner in time.
    pub given_up: u64,
    /// How long requests waited until their session had an owner again.
    pub takeovers: PauseStatus,
}

/// A distribution of pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PauseStatus {
    /// Pauses.
    pub count: u64,
    /// Median in milliseconds, up to 50 % too large or too small.
    pub p50_ms: u64,
    /// 99th percentile, as exact as the median.
    pub p99_ms: u64,
    /// Maximum in milliseconds.
    pub max_ms: u64,
}

impl ClusterStatus {
    pub(crate) fn of(members: &Members, routing: RoutingStatus) -> Self {
        let view = members.view();
        Self {
            node: members.me().to_string(),
            nodes: view.nodes().map(NodeStatus::of).collect(),
            lease: members.has_lease().then(|| members.lease()),
            routing,
        }
    }
}

impl NodeStatus {
    fn of(node: &Node) -> Self {
        let info = node.info().clone();
        Self {
            info: NodeInfo {
                draining: info.draining && !info.starting,
                ..info
            },
            present: node.is_present(),
            reachable: node.is_reachable(),
        }
    }
}
