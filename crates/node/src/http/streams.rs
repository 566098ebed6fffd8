//! Ends HTTP/2 streams whose clients stop reading.
//!
//! A stream's data waits for the client's window, which the socket does not show. So each answer counts its unsent
//! bytes, and the stream's task watches the count. Dropping the task resets only that stream; others may belong to
//! other users behind a proxy.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::task::AtomicWaker;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::Executor;
use shoal_edge::Writing;
use shoal_telemetry::metrics::{GivenUp, metrics};
use tokio::time::{Sleep, sleep};

/// Maximum bytes of a last piece that is sent with END_STREAM. Such a piece can be dropped only with the whole
/// connection. After a longer last piece, END_STREAM follows when the client has read the piece.
const SHORT: usize = 16 << 10;

tokio::task_local! {
    static STREAM: Arc<UnsentBytes>;
}

#[derive(Debug, Default)]
struct UnsentBytes {
    bytes: AtomicUsize,
    writing: Writing,
    task: AtomicWaker,
}

impl UnsentBytes {
    fn add(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::AcqRel) == 0 {
            self.writing.progressed();
        }
    }

    fn taken(&self, bytes: usize) {
        self.writing.progressed();
        if self.bytes.fetch_sub(bytes, Ordering::AcqRel) == bytes {
            self.task.wake();
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.load(Ordering::Acquire) == 0
    }
}

#[derive(Clone)]
pub(super) struct HttpStreams {
    patience: Duration,
    connection: Writing,
}

impl HttpStreams {
    pub(super) fn new(patience: Duration, connection: Writing) -> Self {
        Self {
            patience,
            connection,
        }
    }
}

impl<F> Executor<F> for HttpStreams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let unsent = Arc::<UnsentBytes>::default();
        let driven = Driven {
            stream: Some(Box::pin(STREAM.scope(Arc::clone(&unsent), stream))),
            unsent,
            still: None,
            of: self.clone(),
        };
        tokio::spawn(driven);
    }
}

/// The task of the request's stream watches the unsent bytes.
pub(super) async fn answer<B, E>(
    request: Request<Incoming>,
    answer: impl AsyncFnOnce(Request<Incoming>, Writing) -> Result<Response<B>, E>,
) -> Result<Response<StreamBody<B>>, E> {
    let unsent = STREAM.with(Arc::clone);
    let response = answer(request, unsent.writing.clone()).await?;
    Ok(response.map(|body| StreamBody {
        body,
        unsent,
        unended: false,
    }))
}

struct Driven<F> {
    stream: Option<Pin<Box<F>>>,
    unsent: Arc<UnsentBytes>,
    still: Option<Pin<Box<Sleep>>>,
    of: HttpStreams,
}

impl<F> Driven<F> {
    fn give_up(&mut self) {
        if self.stream.take().is_none() {
            // The stream has ended and cannot be reset, so only the connection can be given up.
            self.of.connection.give_up();
        }
    }

    fn poll_still(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(still) = &mut self.still {
                ready!(still.as_mut().poll(cx));
                self.still = None;
            }
            let left = self
                .of
                .patience
                .saturating_sub(self.unsent.writing.still_for());
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.still = Some(Box::pin(sleep(left)));
        }
    }
}

impl<F: Future<Output = ()>> Future for Driven<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(stream) = &mut self.stream
            && stream.as_mut().poll(cx).is_ready()
        {
            self.stream = None;
        }
        self.unsent.task.register(cx.waker());
        if self.unsent.writing.poll_given_up(cx).is_ready() {
            self.give_up();
            return Poll::Ready(());
        }
        if self.unsent.is_empty() {
            self.still = None;
            return match self.stream {
                Some(_) => Poll::Pending,
                None => Poll::Ready(()),
            };
        }
        ready!(self.poll_still(cx));
        metrics().http.given_up(GivenUp::Stalled);
        tracing::debug!("gave up a stream of which its client takes nothing");
        self.give_up();
        Poll::Ready(())
    }
}

/// Waits until the previous piece is sent.
pub(super) struct StreamBody<B> {
    body: B,
    unsent: Arc<UnsentBytes>,
    unended: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Body for StreamBody<B> {
    type Data = Piece;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, B::Error>>> {
        self.unsent.task.register(cx.waker());
        if !self.unsent.is_empty() {
            return Poll::Pending;
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let frame = frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|data| {
                    self.unended = data.len() > SHORT;
                    Piece::new(data, &self.unsent)
                })
            })
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        !self.unended && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pub(super) struct Piece {
    data: Bytes,
    unsent: Arc<UnsentBytes>,
}

impl Piece {
    fn new(data: Bytes, unsent: &Arc<UnsentBytes>) -> Self {
        unsent.add(data.len());
        Self {
            data,
            unsent: Arc::clone(unsent),
        }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.data.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.data
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
        if count > 0 {
            self.unsent.taken(count);
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if !self.data.is_empty() {
            self.unsent.taken(self.data.len());
        }
    }
}
