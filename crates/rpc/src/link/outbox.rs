mod queue;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use parking_lot::Mutex;
use shoal_telemetry::metrics::{Direction, metrics};
use tokio::sync::Notify;
use tonic::Status;

use self::queue::{FrameQueue, QueueStage};
use super::LONGEST_WHOLE;
use super::frame::{Frame, LinkFrame};
use super::lanes::QueuedFrame;
use super::versions::{BATCHES, PeerHello};
use crate::error::TooLong;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Queued,
    Full,
    Dropped,
}

/// The sending side of a link. Frames of one flight keep their order. Fragments take turns, so that
/// long frames do not hold up others.
pub(crate) struct Outbox<F> {
    queue: Mutex<FrameQueue<F>>,
    room: Notify,
    max_queued: usize,
}

impl<F: Frame> Outbox<F> {
    /// Makes an outbox of `max_queued` bytes, and the stream of its frames. Before [`Outbox::open`], only short frames
    /// may be sent, one by one.
    pub(crate) fn new(max_queued: usize) -> (Arc<Self>, OutStream<F>) {
        let outbox = Arc::new(Self {
            queue: Mutex::new(FrameQueue::new()),
            room: Notify::new(),
            max_queued,
        });
        (Arc::clone(&outbox), OutStream(outbox))
    }

    pub(crate) fn open(&self, peer: &PeerHello) {
        let mut queue = self.queue.lock();
        queue.batches = peer.version >= BATCHES;
        queue.max_frame = peer.max_frame;
    }

    /// Queues a frame of a flight (0: no flight) without waiting, unless the outbox is finished.
    ///
    /// # Errors
    /// If the frame exceeds the peer's limit.
    pub(crate) fn push(&self, flight: u64, frame: impl Into<F>) -> Result<Pushed, TooLong> {
        self.push_if(flight, frame, |_| true)
    }

    /// Like [`push`](Self::push), but not if the outbox [is full](Self::is_full).
    pub(crate) fn push_with_room(
        &self,
        flight: u64,
        frame: impl Into<F>,
    ) -> Result<Pushed, TooLong> {
        if self.is_full() {
            return Ok(Pushed::Full);
        }
        self.push_if(flight, frame, |queued| queued <= self.max_queued)
    }

    fn push_if(
        &self,
        flight: u64,
        frame: impl Into<F>,
        suits: impl FnOnce(usize) -> bool,
    ) -> Result<Pushed, TooLong> {
        let frame = frame.into();
        let bytes = frame.encoded_len();
        let waiting = if bytes > LONGEST_WHOLE {
            let limit = self.queue.lock().max_frame;
            if bytes > limit {
                return Err(TooLong { bytes, limit });
            }
            QueuedFrame::Long(frame.encode_to_vec().into())
        } else {
            QueuedFrame::Whole(frame, bytes)
        };
        let mut queue = self.queue.lock();
        if queue.stage != QueueStage::Open {
            return Ok(Pushed::Dropped);
        }
        if !suits(queue.bytes) {
            return Ok(Pushed::Full);
        }
        queue.push(flight, waiting);
        queue.was_full |= queue.bytes > self.max_queued;
        let waker = queue.waker.take();
        drop(queue);
        wake(waker);
        Ok(Pushed::Queued)
    }

    /// Queues a frame with the short frames, even if long frames of its flight wait.
    pub(crate) fn push_now(&self, frame: impl Into<F>) {
        let frame = frame.into();
        let bytes = frame.encoded_len();
        let mut queue = self.queue.lock();
        if queue.stage != QueueStage::Open {
            return;
        }
        queue.push_now(frame, bytes);
        let waker = queue.waker.take();
        drop(queue);
        wake(waker);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.lock().bytes > self.max_queued
    }

    /// Ends when the outbox accepts no more frames. Cancellation safe.
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
        queue.stage != QueueStage::Open || queue.bytes <= self.max_queued
    }

    /// Accepts no more frames, and sends the reason last. The stream stays open until
    /// [`close`](Self::close).
    pub(crate) fn finish(&self, reason: &str) {
        self.end(QueueStage::Finished, Some(reason));
    }

    /// Ends the stream after its frames, with a reason if the peer needs one.
    pub(crate) fn close(&self, reason: Option<&str>) {
        self.end(QueueStage::Closed, reason);
    }

    fn end(&self, stage: QueueStage, reason: Option<&str>) {
        let last = reason.map(|reason| F::of_link(LinkFrame::Close(reason.to_owned())));
        let mut queue = self.queue.lock();
        queue.finish(last);
        if stage == QueueStage::Closed {
            queue.stage = stage;
        }
        let waker = queue.waker.take();
        drop(queue);
        wake(waker);
        self.room.notify_waiters();
    }

    fn poll_pull(&self, cx: &mut Context<'_>) -> Poll<Option<F>> {
        let mut queue = self.queue.lock();
        let Some((frame, bytes)) = queue.pull() else {
            if queue.stage == QueueStage::Closed {
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
        (metrics().rpc).frame(F::LINK, Direction::Out, bytes as u64);
        Poll::Ready(Some(frame))
    }
}

pub(crate) struct OutStream<F: Frame>(Arc<Outbox<F>>);

impl<F: Frame> Stream for OutStream<F> {
    type Item = F;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F>> {
        self.0.poll_pull(cx)
    }
}

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
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.stage = QueueStage::Closed;
        let dropped = queue.clear();
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
