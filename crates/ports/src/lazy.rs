//! A bounded channel that takes 160 bytes while empty; tokio's takes 2.2 KiB for 32 stream items.
//! Its lock is seldom contended.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use parking_lot::Mutex;
use tokio::task::coop;

/// Number of values whose memory an empty channel keeps.
const KEPT: usize = 8;

/// Makes a channel for `capacity` values, at least one.
pub fn lazy_channel<T>(capacity: usize) -> (LazySender<T>, LazyReceiver<T>) {
    let shared = Arc::new(Mutex::new(ChannelState {
        waiting: VecDeque::new(),
        capacity: capacity.max(1),
        sends: true,
        reads: true,
        reader: None,
        wants_room: Vec::new(),
        wants_end: Vec::new(),
    }));
    (LazySender(Arc::clone(&shared)), LazyReceiver(shared))
}

#[derive(Debug)]
struct ChannelState<T> {
    waiting: VecDeque<T>,
    capacity: usize,
    sends: bool,
    reads: bool,
    reader: Option<Waker>,
    wants_room: Vec<Waker>,
    /// Woken when the channel becomes empty or ends.
    wants_end: Vec<Waker>,
}

fn remember(wakers: &mut Vec<Waker>, cx: &Context<'_>) {
    if !wakers.iter().any(|known| known.will_wake(cx.waker())) {
        if wakers.is_empty() {
            wakers.reserve_exact(1);
        }
        wakers.push(cx.waker().clone());
    }
}

/// The sending end. Waiting values outlive it.
#[derive(Debug)]
pub struct LazySender<T>(Arc<Mutex<ChannelState<T>>>);

/// The receiving end. Dropping it drops waiting values.
#[derive(Debug)]
pub struct LazyReceiver<T>(Arc<Mutex<ChannelState<T>>>);

/// The receiver was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody receives any more")]
pub struct NobodyReceives;

/// The unsent value, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub enum Unsent<T> {
    /// The channel is full.
    Full(T),
    /// The receiver was dropped.
    NobodyReceives(T),
}

impl<T> LazySender<T> {
    /// Sends a value if there is room. The error returns the value.
    pub fn try_send(&self, value: T) -> Result<(), Unsent<T>> {
        let mut state = self.0.lock();
        if !state.reads {
            return Err(Unsent::NobodyReceives(value));
        }
        if state.waiting.len() >= state.capacity {
            return Err(Unsent::Full(value));
        }
        if state.waiting.capacity() == 0 {
            state.waiting.reserve_exact(1);
        }
        state.waiting.push_back(value);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// Sends a value as soon as there is room. Dropping the future drops the value. Fails if the
    /// receiver was dropped.
    pub async fn send(&self, value: T) -> Result<(), NobodyReceives> {
        let mut unsent = Some(value);
        poll_fn(|cx| {
            let value = unsent.take().expect("it is put back unless this is ready");
            match self.try_send(value) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(Unsent::NobodyReceives(_)) => return Poll::Ready(Err(NobodyReceives)),
                Err(Unsent::Full(value)) => unsent = Some(value),
            }
            let mut state = self.0.lock();
            if state.reads && state.waiting.len() >= state.capacity {
                remember(&mut state.wants_room, cx);
            } else {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }

    /// Waits until all values were received or dropped. Cancellation safe.
    pub async fn drained(&self) {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if state.waiting.is_empty() {
                return Poll::Ready(());
            }
            remember(&mut state.wants_room, cx);
            Poll::Pending
        })
        .await;
    }

    /// Whether the channel is empty.
    pub fn is_drained(&self) -> bool {
        self.0.lock().waiting.is_empty()
    }

    /// Returns how many values fit now.
    pub fn room(&self) -> usize {
        let state = self.0.lock();
        state.capacity - state.waiting.len()
    }

    /// Whether the receiver was dropped.
    pub fn is_closed(&self) -> bool {
        !self.0.lock().reads
    }

    /// Waits for the receiver's drop. Cancellation safe.
    pub async fn closed(&self) {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if !state.reads {
                return Poll::Ready(());
            }
            remember(&mut state.wants_end, cx);
            Poll::Pending
        })
        .await;
    }
}

impl<T> LazyReceiver<T> {
    /// Returns the next value; `None` after the last. Cancellation safe.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for [`recv`](Self::recv). Respects tokio's cooperative budget.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let budget = ready!(coop::poll_proceed(cx));
        let mut state = self.0.lock();
        let Some(value) = state.waiting.pop_front() else {
            if !state.sends {
                return Poll::Ready(None);
            }
            if !(state.reader.as_ref()).is_some_and(|known| known.will_wake(cx.waker())) {
                state.reader = Some(cx.waker().clone());
            }
            return Poll::Pending;
        };
        if state.waiting.is_empty() && state.waiting.capacity() > KEPT {
            state.waiting = VecDeque::new();
        }
        let senders = std::mem::take(&mut state.wants_room);
        drop(state);
        budget.made_progress();
        senders.into_iter().for_each(Waker::wake);
        Poll::Ready(Some(value))
    }
}

impl<T> Drop for LazySender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.sends = false;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl<T> Drop for LazyReceiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.reads = false;
        state.reader = None;
        let unread = std::mem::take(&mut state.waiting);
        let senders = std::mem::take(&mut state.wants_room);
        let ends = std::mem::take(&mut state.wants_end);
        drop(state);
        senders.into_iter().chain(ends).for_each(Waker::wake);
        // Dropped outside the lock, because a value's drop may run any code.
        drop(unread);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures::{FutureExt as _, poll};

    use super::{NobodyReceives, Unsent, lazy_channel};

    #[tokio::test]
    async fn values_come_in_order_and_then_the_end() {
        let (sender, mut receiver) = lazy_channel(2);
        let sending = tokio::spawn(async move {
            for value in 0..1000 {
                sender.send(value).await.unwrap();
            }
        });
        for value in 0..1000 {
            assert_eq!(receiver.recv().await, Some(value));
        }
        assert_eq!(receiver.recv().await, None);
        sending.await.unwrap();
    }

    #[tokio::test]
    async fn a_sender_can_wait_until_nothing_waits() {
        let (sender, mut receiver) = lazy_channel(4);
        assert!(sender.is_drained());
        sender.try_send('a').unwrap();
        sender.try_send('b').unwrap();
        let mut drained = Box::pin(sender.drained());
        assert_eq!(poll!(&mut drained), Poll::Pending);
        assert_eq!(receiver.recv().await, Some('a'));
        assert_eq!(poll!(&mut drained), Poll::Pending);
        drop(receiver);
        drained.await;
        assert!(sender.is_drained());
    }

    #[tokio::test]
    async fn a_full_channel_makes_the_sender_wait() {
        let (sender, mut receiver) = lazy_channel(1);
        assert_eq!(sender.room(), 1);
        sender.try_send('a').unwrap();
        assert_eq!(sender.room(), 0);
        assert_eq!(sender.try_send('b'), Err(Unsent::Full('b')));
        let mut waiting = Box::pin(sender.send('b'));
        assert_eq!(poll!(&mut waiting), Poll::Pending);
        assert_eq!(receiver.recv().await, Some('a'));
        assert_eq!(waiting.await, Ok(()));
        assert_eq!(receiver.recv().await, Some('b'));
    }

    #[tokio::test]
    async fn senders_learn_that_the_receiver_is_gone() {
        let (sender, receiver) = lazy_channel(1);
        sender.try_send(1).unwrap();
        let mut closed = Box::pin(sender.closed());
        let mut waiting = Box::pin(sender.send(2));
        assert!(poll!(&mut closed).is_pending());
        assert!(poll!(&mut waiting).is_pending());
        assert!(!sender.is_closed());
        drop(receiver);
        assert!(sender.is_closed());
        assert_eq!(closed.now_or_never(), Some(()));
        assert_eq!(waiting.now_or_never(), Some(Err(NobodyReceives)));
        assert_eq!(sender.try_send(3), Err(Unsent::NobodyReceives(3)));
    }

    #[tokio::test]
    async fn what_waits_is_received_after_the_sender_has_gone() {
        let (sender, mut receiver) = lazy_channel(4);
        let mut early = Box::pin(async { (receiver.recv().await, receiver.recv().await) });
        assert!(poll!(&mut early).is_pending());
        sender.try_send(1).unwrap();
        drop(sender);
        assert_eq!(early.await, (Some(1), None));
    }

    #[test]
    fn room_for_a_burst_is_given_back() {
        let (sender, mut receiver) = lazy_channel(1000);
        (0..1000).for_each(|value| sender.try_send(value).unwrap());
        while let Some(Some(_)) = receiver.recv().now_or_never() {}
        assert!(receiver.0.lock().waiting.capacity() <= super::KEPT);
    }
}
