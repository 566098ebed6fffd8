//! Lets one task poll many small state machines, each only when it was woken.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct ReadySet {
    shared: Arc<ReadyQueue>,
}

#[derive(Default)]
struct ReadyQueue {
    ready: Mutex<VecDeque<Arc<Bell>>>,
    task: AtomicWaker,
}

pub(crate) struct Bell {
    number: u64,
    rung: AtomicBool,
    shared: Arc<ReadyQueue>,
}

impl ReadySet {
    pub(crate) fn bell(&self, number: u64) -> Arc<Bell> {
        Arc::new(Bell {
            number,
            rung: AtomicBool::new(false),
            shared: Arc::clone(&self.shared),
        })
    }

    /// Cancellation safe.
    pub(crate) async fn next(&self) -> u64 {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<u64> {
        if let Some(number) = self.pop() {
            return Poll::Ready(number);
        }
        self.shared.task.register(cx.waker());
        // A bell may have rung between the check and the registration.
        self.pop().map_or(Poll::Pending, Poll::Ready)
    }

    fn pop(&self) -> Option<u64> {
        let bell = self.shared.ready.lock().pop_front()?;
        // Cleared before the caller polls, so that later events ring again.
        bell.rung.store(false, Ordering::Release);
        Some(bell.number)
    }
}

impl Bell {
    pub(crate) fn ring(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.shared.ready.lock().push_back(Arc::clone(self));
            self.shared.task.wake();
        }
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::ReadySet;

    #[tokio::test]
    async fn a_bell_rung_twice_is_looked_at_once_until_it_rings_again() {
        let set = ReadySet::default();
        let (first, second) = (set.bell(1), set.bell(2));
        first.ring();
        first.waker().wake();
        second.ring();
        assert_eq!(set.next().await, 1);
        assert_eq!(set.next().await, 2);
        assert_eq!(set.pop(), None);
        let waiting = tokio::spawn(async move { set.next().await });
        tokio::task::yield_now().await;
        first.ring();
        assert_eq!(waiting.await.unwrap(), 1);
    }
}
