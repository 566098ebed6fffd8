//! The seam through which a session node judges its own lease and other nodes.

use std::time::Duration;

use async_trait::async_trait;

use crate::NodeId;

/// A session node's knowledge of its own lease and of other nodes.
#[async_trait]
pub trait Liveness: Send + Sync + 'static {
    /// Whether the node may assume that it still owns its sessions. By its own clock, its last confirmed lease has not
    /// expired since the renewal was sent, and it knows of no claims against it. Cheap: used for every message.
    fn is_certain(&self) -> bool;

    /// Whether a node currently announces itself, from local knowledge. An absent node may just be slow, so its lease
    /// still protects its sessions.
    fn is_present(&self, _node: &NodeId) -> bool {
        true
    }

    /// Checks directly whether another node is gone. `None` if it is alive, or may come back after being slow, cut off
    /// or stopped. Takes a moment at most.
    async fn evidence_against(&self, node: &NodeId) -> Option<Evidence>;
}

/// Direct evidence that a node with a live lease is gone: its address refuses connections, or another process answers
/// there. Reports of others do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The node that is gone.
    pub against: NodeId,
    /// The length of a lease.
    pub lease: Duration,
}

impl Evidence {
    /// Whether the node has missed a renewal, given the time left on its lease by the store's clock. Nodes renew at a
    /// third of the lease, so a working node keeps more than half.
    #[must_use]
    pub fn has_missed_a_renewal(&self, left: Duration) -> bool {
        left * 2 <= self.lease
    }
}
