use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::link::ServerLink;

/// Dropping it closes the connection in the background.
pub(crate) struct ServerConnection {
    pub(crate) link: Arc<ServerLink>,
    stopping: CancellationToken,
    ended: CancellationToken,
    retired: AtomicBool,
}

impl ServerConnection {
    /// Its tasks close the connection when `stopping` fires, then fire `ended`.
    pub(crate) fn new(
        link: Arc<ServerLink>,
        stopping: CancellationToken,
        ended: CancellationToken,
    ) -> Self {
        Self {
            link,
            stopping,
            ended,
            retired: AtomicBool::new(false),
        }
    }

    pub(crate) fn over(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Waits until the connection takes no more requests. Cancellation safe.
    pub(crate) async fn closes(&self) {
        self.stopping.cancelled().await;
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.link.pending.ended().is_none()
            && !self.stopping.is_cancelled()
            && !self.ended.is_cancelled()
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.stopping.cancel();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Closes the connection in bounded time.
    pub(crate) async fn shutdown(&self) {
        self.stopping.cancel();
        self.ended.cancelled().await;
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}
