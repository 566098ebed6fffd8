//! What waits to be sent on a link: fair among flights, batched, bounded.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tonic::Status;

use super::frame::{Frame, LinkFrame};
use super::lanes::{Lanes, Waiting};
use super::versions::{BATCHES, Peer};
use super::{BATCH_BYTES, BATCH_FRAMES, LONGEST_WHOLE};
use crate::error::TooLong;

/// The sending side of a link. Whoever has something to say pushes it; the connection pulls.
///
/// Frames of one flight keep their order. A long frame goes in fragments, which take turns with those of
/// other flights and with all short frames, so that it holds up nobody.
pub(crate) struct Outbox<F> {
    queue: Mutex<Queue<F>>,
    room: Notify,
    max_queued: usize,
}

struct Queue<F> {
    short: VecDeque<(F, usize)>,
    /// How many short frames were ever pushed.
    pushed: u64,
    long: Lanes<F>,
    /// Whether a fragment is due after the next short frames.
    fragment_next: bool,
    bytes: usize,
    /// Whether somebody may wait for room.
    was_full: bool,
    closed: bool,
    batches: bool,
    /// Whether anything was sent: the first frame travels alone, since it is what settles the version.
    begun: bool,
    max_frame: usize,
    waker: Option<Waker>,
}

impl<F: Frame> Outbox<F> {
    /// An empty outbox that holds `max_queued` bytes, and the stream that empties it. Before
    /// [`Outbox::open`] nothing long or batched may be sent.
    pub(crate) fn new(max_queued: usize) -> (Arc<Self>, OutStream<F>) {
        let outbox = Arc::new(Self {
            queue: Mutex::new(Queue {
                short: VecDeque::new(),
                pushed: 0,
                long: Lanes::new(),
                fragment_next: false,
                bytes: 0,
                was_full: false,
                closed: false,
                batches: false,
                begun: false,
                max_frame: LONGEST_WHOLE,
                waker: None,
            }),
            room: Notify::new(),
            max_queued,
        });
        (Arc::clone(&outbox), OutStream(outbox))
    }

    /// Says what the peer takes.
    pub(crate) fn open(&self, peer: &Peer) {
        let mut queue = self.queue.lock();
        queue.batches = peer.version >= BATCHES;
        queue.max_frame = peer.max_frame;
    }

    /// Sends a frame of a flight (0: of none). Never waits; after the close it is dropped.
    ///
    /// # Errors
    /// When the frame is longer than the peer accepts; nothing was sent.
    pub(crate) fn push(&self, flight: u64, frame: impl Into<F>) -> Result<(), TooLong> {
        let frame = frame.into();
        let bytes = frame.encoded_len();
        let waiting = if bytes > LONGEST_WHOLE {
            let limit = self.queue.lock().max_frame;
            if bytes > limit {
                return Err(TooLong { bytes, limit });
            }
            Waiting::Long(frame.encode_to_vec().into())
        } else {
            Waiting::Whole(frame, bytes)
        };
        let mut queue = self.queue.lock();
        if queue.closed {
            return Ok(());
        }
        queue.bytes += waiting.bytes();
        queue.was_full |= queue.bytes > self.max_queued;
        match waiting {
            Waiting::Whole(frame, bytes) if !queue.long.hold(flight) => {
                queue.push_short(frame, bytes);
            }
            waiting => {
                let pushed = queue.pushed;
                queue.long.push(flight, waiting, pushed);
            }
        }
        let waker = queue.waker.take();
        drop(queue);
        wake(waker);
        Ok(())
    }

    /// Sends a short frame that need not keep its place among those of its flight.
    pub(crate) fn push_now(&self, frame: impl Into<F>) {
        let frame = frame.into();
        let bytes = frame.encoded_len();
        let mut queue = self.queue.lock();
        if queue.closed {
            return;
        }
        queue.bytes += bytes;
        queue.push_short(frame, bytes);
        let waker = queue.waker.take();
        drop(queue);
        wake(waker);
    }

    /// Whether so much waits that nothing avoidable should be added.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.lock().bytes > self.max_queued
    }

    /// Returns once the outbox is no longer full, or is closed. Cancellation safe.
    pub(crate) async fn room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.has_room() {
                return;
            }
            room.await;
        }
    }

    fn has_room(&self) -> bool {
        let queue = self.queue.lock();
        queue.closed || queue.bytes <= self.max_queued
    }

    /// Ends the stream once everything is sent; says why if the peer should know.
    pub(crate) fn close(&self, reason: Option<&str>) {
        if let Some(reason) = reason {
            self.push_now(F::of_link(LinkFrame::Close(reason.to_owned())));
        }
        let mut queue = self.queue.lock();
        queue.closed = true;
        let waker = queue.waker.take();
        drop(queue);
        wake(waker);
        self.room.notify_waiters();
    }

    fn poll_pull(&self, cx: &mut Context<'_>) -> Poll<Option<F>> {
        let mut queue = self.queue.lock();
        let Some((frame, bytes)) = queue.pull() else {
            if queue.closed {
                return Poll::Ready(None);
            }
            match &mut queue.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        };
        queue.bytes -= bytes;
        let room = queue.was_full && queue.bytes <= self.max_queued;
        queue.was_full &= !room;
        drop(queue);
        if room {
            self.room.notify_waiters();
        }
        Poll::Ready(Some(frame))
    }
}

impl<F: Frame> Queue<F> {
    fn push_short(&mut self, frame: F, bytes: usize) {
        self.pushed += 1;
        self.short.push_back((frame, bytes));
    }

    /// The next message and the bytes that leave with it.
    fn pull(&mut self) -> Option<(F, usize)> {
        // Short frames and fragments take turns.
        let fragment_due = self.fragment_next || self.short.is_empty();
        self.fragment_next = !fragment_due;
        if fragment_due && let Some(fragment) = self.pull_fragment() {
            return Some(fragment);
        }
        let (first, mut bytes) = self.short.pop_front()?;
        let begun = std::mem::replace(&mut self.begun, true);
        if !begun || !self.batches || !self.fits(1, bytes) {
            return Some((first, bytes));
        }
        let mut frames = Vec::with_capacity((self.short.len() + 1).min(BATCH_FRAMES));
        frames.push(first);
        while self.fits(frames.len(), bytes)
            && let Some((frame, more)) = self.short.pop_front()
        {
            frames.push(frame);
            bytes += more;
        }
        Some((F::of_link(LinkFrame::Batch(frames)), bytes))
    }

    /// Whether the next short frame goes into a batch that has some already.
    fn fits(&self, frames: usize, bytes: usize) -> bool {
        let next = self.short.front();
        next.is_some_and(|(_, more)| frames < BATCH_FRAMES && bytes + more <= BATCH_BYTES)
    }

    fn pull_fragment(&mut self) -> Option<(F, usize)> {
        if self.long.is_empty() {
            return None;
        }
        let sent = self.pushed - self.short.len() as u64;
        let (fragment, bytes, freed) = self.long.next(sent)?;
        for (frame, bytes) in freed {
            self.push_short(frame, bytes);
        }
        self.long.resume_after(self.pushed);
        Some((fragment, bytes))
    }
}

/// Pulls what was pushed into an outbox; ends when that is closed and empty.
pub(crate) struct OutStream<F: Frame>(Arc<Outbox<F>>);

impl<F: Frame> Stream for OutStream<F> {
    type Item = F;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F>> {
        self.0.poll_pull(cx)
    }
}

/// An [`OutStream`] as a gRPC server sends it.
pub(crate) struct ServerStream<F: Frame>(OutStream<F>);

impl<F: Frame> From<OutStream<F>> for ServerStream<F> {
    fn from(stream: OutStream<F>) -> Self {
        Self(stream)
    }
}

impl<F: Frame> Stream for ServerStream<F> {
    type Item = Result<F, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.0.poll_pull(cx).map(|frame| frame.map(Ok))
    }
}

impl<F: Frame> Drop for OutStream<F> {
    /// The connection is gone: nothing more can be sent.
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.closed = true;
        let dropped = (std::mem::take(&mut queue.short), queue.long.take());
        queue.bytes = 0;
        drop(queue);
        drop(dropped);
        self.0.room.notify_waiters();
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
