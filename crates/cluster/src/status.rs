//! What an operator can see of the cluster from here.

use serde::Serialize;
use shoal_ports::NodeInfo;

use crate::members::Members;
use crate::view::Node;

/// The cluster as this node sees it at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterStatus {
    /// This node.
    pub node: String,
    /// All nodes, this one included, by id.
    pub nodes: Vec<NodeStatus>,
    /// This node's lease; `None` without the session role.
    pub lease: Option<LeaseStatus>,
    /// The way to the owners.
    pub routing: RoutingStatus,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// What it announces. One that has just started does not count as draining.
    #[serde(flatten)]
    pub info: NodeInfo,
    /// Whether its announcement lives.
    pub present: bool,
    /// Whether it could be reached from here when that was last tried.
    pub reachable: bool,
}

/// This node's lease, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseStatus {
    /// Whether it lives.
    pub held: bool,
    /// How long it lives if it is not renewed.
    pub remaining_ms: u64,
    /// How often it has lapsed since the start.
    pub lapses: u64,
}

/// The way to the owners, counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoutingStatus {
    /// Owners that are remembered.
    pub cached_owners: usize,
    /// Messages that were delivered again because the way broke.
    pub redelivered: u64,
    /// Streams that were taken up again at another node, or after the way broke.
    pub reattached: u64,
    /// Streams that could not be taken up again.
    pub lost_streams: u64,
    /// Messages and streams that went by way of another node.
    pub relayed: u64,
    /// Messages and streams for which no owner was found in time.
    pub given_up: u64,
    /// How long those waited whose session found an owner again.
    pub takeovers: PauseStatus,
}

/// How long a number of pauses were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PauseStatus {
    /// How many.
    pub count: u64,
    /// Half were at most this long, to within a half.
    pub p50_ms: u64,
    /// All but one in a hundred were at most this long, to within a half.
    pub p99_ms: u64,
    /// The longest.
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
