//! The ways to other nodes, and how well they have worked lately.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shoal_ports::{NodeInfo, SessionGateway};
use tokio::time::Instant;

/// Makes gateways to other nodes.
pub trait Peers: Send + Sync + 'static {
    /// The gateways to a session node. Called once for each that appears, so it must be quick and connect
    /// later; dropping the gateways closes what they opened.
    fn connect(&self, node: &NodeInfo) -> PeerGateways;
}

/// The two ways of asking another node. Both tell a broken way as
/// [`Unreachable`](shoal_ports::GatewayError::Unreachable), and end their streams with
/// [`Moved`](shoal_ports::StreamItem::Moved) when it breaks.
#[derive(Clone)]
pub struct PeerGateways {
    /// To the node's own sessions: it answers `Moved` for those that another node owns.
    pub own: Arc<dyn SessionGateway>,
    /// To the owner, whoever that is, by way of the node: served by
    /// [`RoutedGateway::relay`](crate::RoutedGateway::relay) over there.
    pub relay: Arc<dyn SessionGateway>,
}

/// A node as this one knows it from its own experience.
pub(crate) struct Peer {
    /// None for this node itself.
    pub(crate) gateways: Option<PeerGateways>,
    /// Sessions that this node has placed there, or tried to, since its last announcement.
    pub(crate) placed: AtomicU64,
    /// When the way there failed last, in microseconds since `known_since`, plus one; 0 when it works.
    failed: AtomicU64,
    known_since: Instant,
}

impl Peer {
    pub(crate) fn new(gateways: Option<PeerGateways>) -> Self {
        Self {
            gateways,
            placed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            known_since: Instant::now(),
        }
    }

    /// Notes that the node could be reached.
    pub(crate) fn worked(&self) {
        // Nearly always it is 0 already, and a read does not take the cache line from others.
        if self.failed.load(Ordering::Relaxed) != 0 {
            self.failed.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that the node could not be reached.
    pub(crate) fn broke(&self) {
        self.failed.store(self.now() + 1, Ordering::Relaxed);
    }

    /// Whether the last attempt to reach it failed.
    pub(crate) fn is_broken(&self) -> bool {
        self.failed.load(Ordering::Relaxed) != 0
    }

    /// Whether an attempt failed so recently that others should be asked first.
    pub(crate) fn is_suspect(&self, suspicion: Duration) -> bool {
        match self.failed.load(Ordering::Relaxed) {
            0 => false,
            failed => {
                let ago = self.now().saturating_sub(failed - 1);
                u128::from(ago) < suspicion.as_micros()
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.known_since.elapsed().as_micros()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Peer;

    #[tokio::test(start_paused = true)]
    async fn suspicion_fades() {
        let peer = Peer::new(None);
        let second = Duration::from_secs(1);
        assert!(!peer.is_suspect(second));
        peer.broke();
        assert!(peer.is_suspect(second));
        tokio::time::advance(second).await;
        assert!(!peer.is_suspect(second), "it is tried again");
        assert!(peer.is_broken(), "but it has not worked yet");
        peer.worked();
        assert!(!peer.is_broken());
    }
}
