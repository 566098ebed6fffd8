//! What an operator can see of the cluster from here.

use serde::Serialize;

use crate::members::Members;
use crate::view::Node;

/// The cluster as this node sees it at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterStatus {
    /// This node.
    pub node: String,
    /// All nodes, this one included, by id.
    pub nodes: Vec<NodeStatus>,
    /// This node's lease.
    pub lease: LeaseStatus,
    /// The way to the owners.
    pub routing: RoutingStatus,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// Its id.
    pub id: String,
    /// Where it is dialled.
    pub address: String,
    /// The release that it runs.
    pub version: String,
    /// Whether it takes sessions.
    pub session: bool,
    /// Whether it serves clients.
    pub edge: bool,
    /// Whether it is leaving.
    pub draining: bool,
    /// Whether it has just started and has yet to learn what there is.
    pub starting: bool,
    /// Whether its announcement lives.
    pub present: bool,
    /// Whether it could be reached from here when that was last tried.
    pub reachable: bool,
    /// Sessions that it holds.
    pub sessions: u64,
    /// Requests in flight there.
    pub in_flight: u64,
}

/// This node's lease, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseStatus {
    /// Whether it lives. Nodes without the session role have none.
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
    /// Half were at most this long, to within a quarter.
    pub p50_ms: u64,
    /// All but one in a hundred were at most this long, to within a quarter.
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
            lease: members.lease(),
            routing,
        }
    }
}

impl NodeStatus {
    fn of(node: &Node) -> Self {
        let info = node.info();
        Self {
            id: info.id.to_string(),
            address: info.address.clone(),
            version: info.version.clone(),
            session: info.session,
            edge: info.edge,
            draining: info.draining && !info.starting,
            starting: info.starting,
            present: node.is_present(),
            reachable: node.is_reachable(),
            sessions: info.sessions,
            in_flight: info.in_flight,
        }
    }
}
