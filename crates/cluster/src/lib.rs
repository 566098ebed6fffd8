//! Membership, leases, placement, and the way to the owner of a session.
//!
//! [`Members`] keeps this node in the cluster and sees the others; [`RoutedGateway`] sends what edges have
//! for a session to the node that owns it, waits while it has none, and keeps clients' streams through a
//! change of owner; [`WorkerJoins`] keeps workers joined to all nodes.
//!
//! | file | |
//! |---|---|
//! | `members.rs`, `view.rs` | this node's lease and announcement, the picture of all nodes |
//! | `placement.rs`, `rendezvous.rs` | who gets a new session, who takes one that nobody owns |
//! | `routed/retry_decision.rs` | the one table of which errors are tried again, and how |
//! | `routed/search.rs` | the search for an owner, with patience |
//! | `routed/stream.rs` | streams that outlive owners |
//! | `peers.rs`, `rpc_peers.rs` | the ways to other nodes |
//! | `rehearsal.rs` | the rules of placement by themselves, for simulations |
//! | `fleet.rs` | all nodes as operators see them |
//! | `workers.rs`, `workers/plan.rs` | which nodes a worker is joined to |

mod cache;
mod config;
mod counters;
mod fleet;
mod members;
mod peers;
mod placement;
#[cfg(feature = "rehearsal")]
pub mod rehearsal;
mod rendezvous;
mod routed;
mod rpc_peers;
mod status;
#[cfg(any(test, feature = "rehearsal"))]
mod testing;
mod view;
mod workers;

pub use config::{MembersConfig, RoutingConfig};
pub use fleet::{
    Fleet, Gathered, History, Located, LostNode, NodeSeen, Overview, RatePoint, ToolSeen,
    ToolsSeen, Unseen, WorkerSeen,
};
pub use members::{Members, NodeLoad, Ownership, PoolsElsewhere, PoolsHere};
pub use peers::{PeerGateways, Peers};
pub use routed::RoutedGateway;
pub use rpc_peers::RpcPeers;
pub use shoal_rpc::Sight;
pub use status::{ClusterStatus, LeaseStatus, NodeStatus, PauseStatus, RoutingStatus};
pub use view::{Node, View};
pub use workers::{JoinConfig, JoinStatus, JoinedWorker, WorkerJoins};
