//! Ends connections at the shutdown without losing requests.
//!
//! Closing an idle HTTP/1.1 connection loses a request on its way. During the drain, each answer therefore announces
//! the connection's end, and idle connections stay for a while, because most clients send another request in time.

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

use super::stream::RequestProgress;

/// Clones share the state.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending(Arc<EndingInner>);

#[derive(Debug, Default)]
struct EndingInner {
    draining: CancellationToken,
    closing: CancellationToken,
    idle: AtomicUsize,
    fewer: Notify,
}

impl Ending {
    pub(super) fn drain(&self) {
        self.0.draining.cancel();
    }

    pub(super) fn close(&self) {
        self.0.draining.cancel();
        self.0.closing.cancel();
    }

    pub(super) async fn closing(&self) {
        self.0.closing.cancelled().await;
    }

    pub(super) fn idle(&self) -> usize {
        self.0.idle.load(Ordering::Acquire)
    }

    /// Cancellation safe.
    pub(super) async fn until_none_idles(&self) {
        loop {
            let fewer = self.0.fewer.notified();
            if self.idle() == 0 {
                return;
            }
            fewer.await;
        }
    }

    /// Dropping the guard ends the idle time.
    pub(super) fn idling(&self) -> Idling {
        self.0.idle.fetch_add(1, Ordering::AcqRel);
        Idling(self.clone())
    }

    fn one_less(&self) {
        self.0.idle.fetch_sub(1, Ordering::AcqRel);
        // Only a drain waits for idle connections.
        if self.0.draining.is_cancelled() {
            self.0.fewer.notify_waiters();
        }
    }

    /// A drain sends `GOAWAY`.
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

    /// When the server closes, the present answer is the last one.
    pub(super) async fn watch_http1<C: GracefulConnection>(
        &self,
        mut connection: Pin<&mut C>,
    ) -> Result<(), C::Error> {
        tokio::select! {
            // A request that has arrived must be read.
            biased;
            ended = &mut connection => return ended,
            () = self.closing() => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }
}

#[derive(Debug)]
pub(super) struct Idling(Ending);

impl Idling {
    pub(super) fn requests(self, seen: Arc<RequestProgress>) -> Requests {
        Requests(Arc::new(OneConnection { idling: self, seen }))
    }
}

impl Drop for Idling {
    fn drop(&mut self) {
        self.0.one_less();
    }
}

#[derive(Clone, Debug)]
pub(super) struct Requests(Arc<OneConnection>);

#[derive(Debug)]
struct OneConnection {
    idling: Idling,
    seen: Arc<RequestProgress>,
}

impl Requests {
    /// Waits for an answer. The connection counts as busy until the answer is dropped. The answer announces the
    /// connection's end if the server drains, or if the client has not sent the whole request.
    pub(super) async fn answer<B>(
        &self,
        answer: impl Future<Output = Response<B>>,
    ) -> Result<Response<CountedBody<B>>, Infallible> {
        let open = OpenRequest::new(self.clone());
        let mut response = answer.await;
        // A 101 ends HTTP on this connection, and its `Connection` header names the next protocol.
        let goes_on = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if !goes_on && (self.0.idling.0.0.draining.is_cancelled() || self.0.seen.is_amid()) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Ok(response.map(|body| CountedBody { body, _open: open }))
    }
}

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
