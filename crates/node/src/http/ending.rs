//! How connections end when their server does: not under a request.
//!
//! A server closes a connection of HTTP/1.1 that idles without knowing whether a request is on its way to it,
//! and such a request is lost. So it says first, with each answer, that the connection ends here, and leaves
//! those that idle alone for a while: most clients have something to say within it. One whose answer had begun
//! before, as a stream's has, was not told, and idles like the others when it is through.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};
use hyper_util::server::graceful::GracefulConnection;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::stream::Seen;

/// The end of a server, as its connections see it. Clones are the same end.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending(Arc<EndingInner>);

#[derive(Debug, Default)]
struct EndingInner {
    draining: CancellationToken,
    closing: CancellationToken,
    /// Connections of HTTP/1.1 without a request, or that have said nothing yet.
    idle: AtomicUsize,
    fewer: Notify,
}

impl Ending {
    /// Each answer from now on is the last one on its connection.
    pub(super) fn drain(&self) {
        self.0.draining.cancel();
    }

    /// Connections that idle end now, the others with their present answer.
    pub(super) fn close(&self) {
        self.0.draining.cancel();
        self.0.closing.cancel();
    }

    /// Waits for [`close`](Self::close).
    pub(super) async fn closing(&self) {
        self.0.closing.cancelled().await;
    }

    /// Connections that idle.
    pub(super) fn idle(&self) -> usize {
        self.0.idle.load(Ordering::Acquire)
    }

    /// Waits until none does. Cancellation safe.
    pub(super) async fn until_none_idles(&self) {
        loop {
            let fewer = self.0.fewer.notified();
            if self.idle() == 0 {
                return;
            }
            fewer.await;
        }
    }

    /// Counts a connection that idles, until this is dropped.
    pub(super) fn idling(&self) -> Idling {
        self.0.idle.fetch_add(1, Ordering::AcqRel);
        Idling(self.clone())
    }

    fn one_less(&self) {
        self.0.idle.fetch_sub(1, Ordering::AcqRel);
        // Nobody waits for it before.
        if self.0.draining.is_cancelled() {
            self.0.fewer.notify_waiters();
        }
    }

    /// Serves a connection of HTTP/2 to its end: it is told to open no more streams as soon as the server
    /// drains.
    pub(super) async fn watch_http2<C: GracefulConnection>(
        &self,
        mut connection: Pin<&mut C>,
    ) -> Result<(), C::Error> {
        tokio::select! {
            biased;
            ended = &mut connection => return ended,
            () = self.0.draining.cancelled() => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }

    /// Serves a connection of HTTP/1.1 to its end: with the first answer that says so while the server drains, or when
    /// the server closes.
    pub(super) async fn watch_http1<C: GracefulConnection>(
        &self,
        mut connection: Pin<&mut C>,
    ) -> Result<(), C::Error> {
        tokio::select! {
            // First, so that a request that has arrived is read.
            biased;
            ended = &mut connection => return ended,
            () = self.closing() => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }
}

/// A connection that idles.
#[derive(Debug)]
pub(super) struct Idling(Ending);

impl Idling {
    /// The requests of the connection, from now on.
    pub(super) fn requests(self, seen: Arc<Seen>) -> Requests {
        Requests(Arc::new(OneConnection { idling: self, seen }))
    }
}

impl Drop for Idling {
    fn drop(&mut self) {
        self.0.one_less();
    }
}

/// The requests of one connection of HTTP/1.1: one at a time, until its answer is written.
#[derive(Clone, Debug)]
pub(super) struct Requests(Arc<OneConnection>);

#[derive(Debug)]
struct OneConnection {
    idling: Idling,
    seen: Arc<Seen>,
}

impl Requests {
    /// Counts a request until its answer is dropped. While the server drains, the answer says that it is the
    /// connection's last, as does one that comes before all of the request is there: nobody waits for the rest.
    pub(super) async fn answer<B>(
        &self,
        answer: impl Future<Output = Response<B>>,
    ) -> Result<Response<CountedBody<B>>, Infallible> {
        let open = OpenRequest::new(self.clone());
        let mut response = answer.await;
        // After 101 the connection has no other answer anyway, and its headers say which protocol follows.
        let goes_on = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if !goes_on && (self.0.idling.0.0.draining.is_cancelled() || self.0.seen.is_amid()) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Ok(response.map(|body| CountedBody { body, _open: open }))
    }
}

/// A request that is being answered.
#[derive(Debug)]
struct OpenRequest(Requests);

impl OpenRequest {
    fn new(requests: Requests) -> Self {
        requests.0.idling.0.one_less();
        Self(requests)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let idle = &self.0.0.idling.0.0.idle;
        idle.fetch_add(1, Ordering::AcqRel);
        self.0.0.seen.end_answer();
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(super) struct CountedBody<B> {
    body: B,
    _open: OpenRequest,
}

impl<B: Body + Unpin> Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
