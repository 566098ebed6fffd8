//! How the writing of an answer goes on, as whoever serves the connection sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::time::Instant;

/// When a client last took something of its answer, and the means to give it up. Clones are of the same writing.
///
/// It is that of the connection where that has one answer at a time (HTTP/1.1), of the stream where it has many (HTTP/2).
#[derive(Clone, Debug)]
pub struct Writing(Arc<WritingState>);

#[derive(Debug)]
struct WritingState {
    began: Instant,
    /// When something was taken last, in milliseconds since `began`.
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
    /// Something was taken, or there is something to take from now on.
    pub fn progressed(&self) {
        self.0.taken.store(self.now(), Ordering::Relaxed);
    }

    /// For how long nothing has been taken.
    pub fn still_for(&self) -> Duration {
        let taken = self.0.taken.load(Ordering::Relaxed);
        Duration::from_millis(self.now().saturating_sub(taken))
    }

    /// Gives up what is being written: the connection or the stream ends, and what waits is dropped.
    pub fn give_up(&self) {
        self.0.given_up.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Ready once the writing is given up. For one task at a time.
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
