//! Membership, leases, placement, and routing to the owners of sessions.
//!
//! | file | |
//! |---|---|
//! | `members.rs`, `view.rs` | this node's lease and announcement, the view of all nodes |
//! | `placement.rs`, `rendezvous.rs` | the choice of the node for a new session, and for a session without an owner |
//! | `routed/retry_decision.rs` | the one table of which errors are retried, and how |
//! | `routed/search.rs` | the search for an owner |
//! | `routed/stream.rs` | streams that outlive owners |
//! | `peers.rs`, `rpc_peers.rs` | gateways to other nodes |
//! | `fleet.rs` | all nodes as operators see them |
//! | `workers.rs`, `workers/plan.rs` | the nodes that a worker is joined to |

mod cache;
mod config;
mod counters;
mod fleet;
mod members;
mod peers;
mod placement;
mod rendezvous;
mod routed;
mod rpc_peers;
mod status;
#[cfg(test)]
mod testing;
mod view;
mod workers;

pub use config::{MembersConfig, RoutingConfig};
pub use fleet::{
    Fleet, Gathered, History, Located, LostNode, NodeSeen, Overview, RatePoint, ToolSeen,
    ToolsSeen, Unseen, WorkerSeen,
};
pub use members::{LeaseStatus, Members, NodeLoad, Ownership, PoolsElsewhere, PoolsHere};
pub use peers::{PeerGateways, Peers};
pub use routed::RoutedGateway;
pub use rpc_peers::RpcPeers;
pub use shoal_rpc::Sight;
pub use status::{ClusterStatus, NodeStatus, PauseStatus, RoutingStatus};
pub use view::{Node, View};
pub use workers::{JoinConfig, JoinStatus, JoinedWorker, WorkerJoins};
