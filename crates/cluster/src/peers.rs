use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{NodeInfo, SessionGateway};
use shoal_rpc::Sight;
use tokio::time::Instant;

/// Makes gateways to other nodes.
#[async_trait]
pub trait Peers: Send + Sync + 'static {
    /// Returns the gateways to a node that appeared. An implementation returns at once and connects later. Dropping the
    /// gateways closes their connections.
    fn connect(&self, node: &NodeInfo) -> PeerGateways;

    /// Probes briefly whether a node's process is alive. The process is gone if the address refuses connections or
    /// another process answers there. A slow, partitioned or stopped node counts as unknown.
    async fn look_for(&self, node: &NodeInfo) -> Sight;
}

/// The two gateways to another node. If the link breaks, requests over both fail with
/// [`Unreachable`](shoal_ports::GatewayError::Unreachable), or with [`Unsent`](shoal_ports::GatewayError::Unsent) if
/// they were not sent. Streams end with [`Moved`](shoal_ports::StreamItem::Moved).
#[derive(Clone)]
pub struct PeerGateways {
    /// Leads to the node's own sessions. For other sessions, it answers `Moved`.
    pub own: Arc<dyn SessionGateway>,
    /// Leads to the session's owner through the node's [`RoutedGateway::relay`](crate::RoutedGateway::relay).
    pub relay: Arc<dyn SessionGateway>,
}

pub(crate) struct PeerNode {
    /// `None` for this node itself.
    pub(crate) gateways: Option<PeerGateways>,
    /// Sessions that this node placed on the peer since the peer's last announcement.
    pub(crate) placed: AtomicU64,
    /// When the link last failed, in microseconds since `known_since`, plus one; 0 if the link works.
    failed: AtomicU64,
    /// When a probe last found the process gone, encoded like `failed`.
    gone: AtomicU64,
    /// When the process was last probed; locked during a probe.
    looked: tokio::sync::Mutex<Option<Instant>>,
    known_since: Instant,
}

/// How long callers share a probe's result: many ask at once when a link breaks.
const LOOKED_FOR: Duration = Duration::from_millis(100);

impl PeerNode {
    pub(crate) fn new(gateways: Option<PeerGateways>) -> Self {
        Self {
            gateways,
            placed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            gone: AtomicU64::new(0),
            looked: tokio::sync::Mutex::default(),
            known_since: Instant::now(),
        }
    }

    pub(crate) fn worked(&self) {
        // Both are usually 0. A read, unlike a write, leaves the cache line shared with other cores.
        for failure in [&self.failed, &self.gone] {
            if failure.load(Ordering::Relaxed) != 0 {
                failure.store(0, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn broke(&self) {
        self.failed.store(self.now() + 1, Ordering::Relaxed);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.failed.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn is_suspect(&self, suspicion: Duration) -> bool {
        self.is_recent(&self.failed, suspicion)
    }

    pub(crate) fn was_gone(&self, recently: Duration) -> bool {
        self.is_recent(&self.gone, recently)
    }

    /// Concurrent callers share a probe. For the time `remembered`, an inconclusive probe does not revoke an earlier
    /// "gone", because connections to an ended container soon time out instead of being refused.
    pub(crate) async fn is_gone(
        &self,
        look: impl Future<Output = Sight>,
        remembered: Duration,
    ) -> bool {
        let mut looked = self.looked.lock().await;
        if looked.is_none_or(|at| at.elapsed() >= LOOKED_FOR) {
            let sight = look.await;
            *looked = Some(Instant::now());
            match sight {
                Sight::Gone => self.gone.store(self.now() + 1, Ordering::Relaxed),
                Sight::There => self.gone.store(0, Ordering::Relaxed),
                Sight::Unknown => {}
            }
        }
        self.was_gone(remembered)
    }

    fn is_recent(&self, since: &AtomicU64, recently: Duration) -> bool {
        match since.load(Ordering::Relaxed) {
            0 => false,
            since => {
                let ago = self.now().saturating_sub(since - 1);
                u128::from(ago) < recently.as_micros()
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.known_since.elapsed().as_micros()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use shoal_rpc::Sight;

    use super::{LOOKED_FOR, PeerNode};

    #[tokio::test(start_paused = true)]
    async fn suspicion_fades() {
        let peer = PeerNode::new(None);
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

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_together_look_once() {
        let (peer, second) = (PeerNode::new(None), Duration::from_secs(1));
        let looks = AtomicUsize::new(0);
        let look = |sight: Sight| {
            let looks = &looks;
            let looked = async move {
                tokio::time::sleep(LOOKED_FOR / 10).await;
                looks.fetch_add(1, Ordering::Relaxed);
                sight
            };
            peer.is_gone(looked, second)
        };
        let both = tokio::join!(look(Sight::There), look(Sight::Gone));
        assert_eq!((both, looks.load(Ordering::Relaxed)), ((false, false), 1));
        tokio::time::advance(LOOKED_FOR).await;
        let both = tokio::join!(look(Sight::Gone), look(Sight::There));
        assert!(peer.was_gone(second));
        assert_eq!((both, looks.load(Ordering::Relaxed)), ((true, true), 2));
        peer.worked();
        assert!(!peer.was_gone(second), "it was somebody else's address");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_gone_stays_so_while_nothing_is_known_for_as_long_as_that_is_remembered() {
        let (peer, second) = (PeerNode::new(None), Duration::from_secs(1));
        let look = |sight: Sight| peer.is_gone(async move { sight }, second);
        assert!(!look(Sight::Unknown).await, "it has never been seen to be");
        tokio::time::advance(LOOKED_FOR).await;
        assert!(look(Sight::Gone).await);
        tokio::time::advance(second / 2).await;
        assert!(look(Sight::Unknown).await);
        tokio::time::advance(second / 2).await;
        assert!(!look(Sight::Unknown).await, "what is believed was seen");
        assert!(!peer.was_gone(second));
        tokio::time::advance(LOOKED_FOR).await;
        assert!(look(Sight::Gone).await);
        tokio::time::advance(LOOKED_FOR).await;
        assert!(!look(Sight::There).await);
    }
}
