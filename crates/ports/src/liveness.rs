use std::time::Duration;

use async_trait::async_trait;

use crate::NodeId;

/// Judges the lease of this node and the presence of other nodes.
#[async_trait]
pub trait Liveness: Send + Sync + 'static {
    /// Whether this node may assume that it owns its sessions: its lease lives by its own clock, counted from the
    /// sending of the renewal, and no other node is known to have claimed a session. Cheap.
    fn is_certain(&self) -> bool;

    /// Whether the node announces itself. An absent node may just be slow.
    fn is_present(&self, _node: &NodeId) -> bool {
        true
    }

    /// Checks directly whether another node is gone. `None` if that node may come back. Takes a moment at most.
    async fn evidence_against(&self, node: &NodeId) -> Option<Evidence>;
}

/// Direct evidence that a node is gone: its address refuses connections, or another process answers there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The lost node.
    pub against: NodeId,
    /// The node's lease.
    pub lease: Duration,
}

impl Evidence {
    /// Whether the node has missed a renewal: at most half of its lease is `left`, although nodes renew after a
    /// third.
    #[must_use]
    pub fn has_missed_a_renewal(&self, left: Duration) -> bool {
        left * 2 <= self.lease
    }
}
