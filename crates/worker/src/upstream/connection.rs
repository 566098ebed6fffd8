//! A connection to a server, whatever carries it: whether it lives, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::link::Link;

/// A handle on an open connection. Dropping it closes the connection in the background.
pub(crate) struct Connection {
    /// Where requests go.
    pub(crate) link: Arc<Link>,
    stopping: CancellationToken,
    ended: CancellationToken,
    retired: AtomicBool,
}

impl Connection {
    /// A connection whose tasks close it once `stopping` fires, and fire `ended` when they have.
    pub(crate) fn new(
        link: Arc<Link>,
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

    /// Fires when the connection has ended, or is of no use any more.
    pub(crate) fn over(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Returns once no more requests can be sent. Cancellation safe.
    pub(crate) async fn closes(&self) {
        self.stopping.cancelled().await;
    }

    /// Whether requests can still be sent.
    pub(crate) fn is_alive(&self) -> bool {
        self.link.pending.ended().is_none()
            && !self.stopping.is_cancelled()
            && !self.ended.is_cancelled()
    }

    /// Closes the connection in the background, because it is of no use any more.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.stopping.cancel();
    }

    /// Whether its end was wanted.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Closes the connection and waits for its end, which its tasks bound in time.
    pub(crate) async fn shutdown(&self) {
        self.stopping.cancel();
        self.ended.cancelled().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}
