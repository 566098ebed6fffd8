//! The seam through which a session node judges leases.

use std::time::Duration;

use async_trait::async_trait;

use crate::NodeId;

/// A session node's view of its own lease and of other nodes.
#[async_trait]
pub trait Liveness: Send + Sync + 'static {
    /// Whether the node may assume that it owns its sessions: its lease, counted from the sent renewal, lives by its
    /// own clock, and no claims are known. Cheap.
    fn is_certain(&self) -> bool;

    /// Whether a node announces itself, as known here. An absent node may just be slow.
    fn is_present(&self, _node: &NodeId) -> bool {
        true
    }

    /// Checks directly whether another node is gone. `None` if it may come back. Takes a moment at most.
    async fn evidence_against(&self, node: &NodeId) -> Option<Evidence>;
}

/// Direct evidence that a node is gone: its address refuses connections, or another process answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The node that is gone.
    pub against: NodeId,
    /// The length of a lease.
    pub lease: Duration,
}

impl Evidence {
    /// Whether the node has missed a renewal, given the rest of its lease. Nodes renew at a third, so a working one
    /// keeps more than half.
    #[must_use]
    pub fn has_missed_a_renewal(&self, left: Duration) -> bool {
        left * 2 <= self.lease
    }
}
