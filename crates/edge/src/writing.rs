use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::time::Instant;

/// How far an answer was written. The HTTP server ends an answer that was given up. Clones share
/// the state.
///
/// An HTTP/1.1 connection's answers share one [`Writing`]. In HTTP/2, each stream has its own.
#[derive(Clone, Debug)]
pub struct Writing(Arc<WritingState>);

#[derive(Debug)]
struct WritingState {
    began: Instant,
    /// The client's last read, in milliseconds since `began`.
    taken: AtomicU64,
    given_up: AtomicBool,
    waker: AtomicWaker,
}

impl Default for Writing {
    fn default() -> Self {
        Self(Arc::new(WritingState {
            began: Instant::now(),
            taken: AtomicU64::new(0),
            given_up: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }))
    }
}

impl Writing {
    /// Notes that the client has read data, or that data is there from now on.
    pub fn progressed(&self) {
        self.0.taken.store(self.now(), Ordering::Relaxed);
    }

    /// Returns how long the client has read nothing.
    pub fn still_for(&self) -> Duration {
        let taken = self.0.taken.load(Ordering::Relaxed);
        Duration::from_millis(self.now().saturating_sub(taken))
    }

    /// Ends the connection or stream, and drops the waiting data.
    pub fn give_up(&self) {
        self.0.given_up.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Ready once [`give_up`](Self::give_up) was called. At most one task may wait.
    pub fn poll_given_up(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.waker.register(cx.waker());
        match self.0.given_up.load(Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
