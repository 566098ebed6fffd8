//! The seam that tells a node that owns sessions how it stands with the other nodes.

use std::time::Duration;

use async_trait::async_trait;

use crate::NodeId;

/// What a node that owns sessions has to know of itself and of the others.
#[async_trait]
pub trait Liveness: Send + Sync + 'static {
    /// Whether it may take for granted that its sessions are its own: the store has confirmed a renewal of its lease,
    /// counted from when that was sent, that has not run out by its own clock, and nothing says that others may have
    /// claimed. Cheap: asked with every message.
    fn is_certain(&self) -> bool;

    /// Whether a node is among those that announce themselves, as far as this one knows. Asks nobody. One that is not may be
    /// slow: what it owned is only ever claimed as its lease says.
    fn is_present(&self, _node: &NodeId) -> bool {
        true
    }

    /// Looks for itself whether another node is gone. `None` if it is not, or if that cannot be told: one that is slow,
    /// cut off or stopped may come back. Takes no longer than a moment.
    async fn evidence_against(&self, node: &NodeId) -> Option<Evidence>;
}

/// That a node is gone though its lease lives, as another one has seen by itself: its address refuses connections, or
/// another process answers there. What others say is no evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The node that is gone.
    pub against: NodeId,
    /// How long a lease lasts.
    pub lease: Duration,
}

impl Evidence {
    /// Whether the node has missed a renewal, given how long its lease lives on by the store's clock. A node renews at a
    /// third of its lease, so the lease of one that works never falls to a half.
    #[must_use]
    pub fn has_missed_a_renewal(&self, left: Duration) -> bool {
        left * 2 <= self.lease
    }
}
