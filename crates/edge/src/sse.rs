//! Server-sent events, written only as fast as the client reads them.
//!
//! Data waits only in the bounded channel and the socket's buffer. Frames that are ready together
//! leave in one piece.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use http::{HeaderValue, header};
use http_body::Frame;
use shoal_protocol::EventId;
use shoal_telemetry::metrics::{self, Direction, metrics};
use tokio::time::{Instant, Sleep};

use crate::names;

/// A comment keeps proxies from closing the connection.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b":\n\n");
/// A piece of this many bytes takes no more frames. A longer frame is sent alone and not copied.
const PIECE: usize = 16 * 1024;
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// `no-transform` keeps Express, Caddy and Traefik from compressing, which would delay events.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store, no-transform");
const NO_BUFFERING: HeaderValue = HeaderValue::from_static("no");
const MESSAGE: &[u8] = b"event: message\n";
const ENDPOINT: &[u8] = b"event: endpoint\n";

/// Streams `frames`. `held` is dropped with the stream.
pub(crate) fn response<S, H>(frames: S, keep_alive: Duration, held: H) -> Response
where
    S: Stream<Item = Bytes> + Send + Unpin + 'static,
    H: Send + Unpin + 'static,
{
    let body = SseBody {
        frames,
        next: None,
        keep_alive: KeepAlive::new(keep_alive),
        ended: false,
        _held: held,
    };
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENT_STREAM);
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers.insert(names::ACCEL_BUFFERING.clone(), NO_BUFFERING);
    response
}

/// Names the event type, because some clients skip events without one.
pub(crate) fn message(data: &[u8]) -> Bytes {
    frame(MESSAGE, None, data)
}

pub(crate) fn resumable(id: EventId, data: &[u8]) -> Bytes {
    frame(MESSAGE, Some(id), data)
}

pub(crate) fn endpoint(url: &str) -> Bytes {
    frame(ENDPOINT, None, url.as_bytes())
}

/// An event that only gives the client an id to resume from (2025-11-25, SEP-1699).
pub(crate) fn prime(id: EventId) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

/// The reconnect delay must be the last frame, because some clients cannot read this field and fail
/// here.
pub(crate) fn retry(after: Duration) -> Bytes {
    format!("retry: {}\n\n", after.as_millis()).into()
}

fn frame(event: &'static [u8], id: Option<EventId>, data: &[u8]) -> Bytes {
    let mut text = BytesMut::with_capacity(data.len() + event.len() + 64);
    text.put_slice(event);
    if let Some(id) = id {
        text.put_slice(b"id: ");
        id.write_to(&mut text);
        text.put_u8(b'\n');
    }
    text.put_slice(b"data: ");
    put_on_one_line(&mut text, data);
    text.put_slice(b"\n\n");
    text.freeze()
}

/// Line breaks would end the field. In JSON they are only white space between tokens.
fn put_on_one_line(text: &mut BytesMut, data: &[u8]) {
    let mut rest = data;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        text.put_slice(&rest[..at]);
        text.put_u8(b' ');
        rest = &rest[at + 1..];
    }
    text.put_slice(rest);
}

struct SseBody<S, H> {
    frames: S,
    next: Option<Bytes>,
    keep_alive: KeepAlive,
    ended: bool,
    _held: H,
}

impl<S, H> SseBody<S, H>
where
    S: Stream<Item = Bytes> + Unpin,
{
    fn piece(&mut self, first: Bytes, cx: &mut Context<'_>) -> Bytes {
        measure(&first);
        let mut piece = SsePiece::One(first);
        while piece.has_room() {
            match Pin::new(&mut self.frames).poll_next(cx) {
                Poll::Ready(Some(frame)) if frame.len() > PIECE => {
                    self.next = Some(frame);
                    break;
                }
                Poll::Ready(Some(frame)) => {
                    measure(&frame);
                    piece.add(&frame);
                }
                Poll::Ready(None) => {
                    self.ended = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        piece.into_bytes()
    }
}

impl<S, H> http_body::Body for SseBody<S, H>
where
    S: Stream<Item = Bytes> + Unpin,
    H: Unpin,
{
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = match self.next.take() {
            Some(next) => Poll::Ready(Some(next)),
            None => Pin::new(&mut self.frames).poll_next(cx),
        };
        let piece = match next {
            Poll::Ready(Some(first)) => self.piece(first, cx),
            Poll::Ready(None) => {
                self.ended = true;
                return Poll::Ready(None);
            }
            Poll::Pending => {
                ready!(self.keep_alive.poll(cx));
                measure(&COMMENT);
                return Poll::Ready(Some(Ok(Frame::data(COMMENT))));
            }
        };
        self.keep_alive.wrote();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

enum SsePiece {
    One(Bytes),
    Many(BytesMut),
}

impl SsePiece {
    fn has_room(&self) -> bool {
        let length = match self {
            Self::One(frame) => frame.len(),
            Self::Many(frames) => frames.len(),
        };
        length < PIECE
    }

    fn add(&mut self, frame: &Bytes) {
        match self {
            Self::One(first) => {
                let mut frames = BytesMut::with_capacity(first.len() + 4 * frame.len());
                frames.put_slice(first);
                frames.put_slice(frame);
                *self = Self::Many(frames);
            }
            Self::Many(frames) => frames.put_slice(frame),
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::One(frame) => frame,
            Self::Many(frames) => frames.freeze(),
        }
    }
}

fn measure(frame: &Bytes) {
    let http = &metrics().http;
    let bytes = u64::try_from(frame.len()).unwrap_or(u64::MAX);
    http.bytes(Direction::Out, metrics::Body::Sse, bytes);
    if !frame.starts_with(b":") && !frame.starts_with(b"retry") {
        http.events(1);
    }
}

/// Fires after a silent interval. The timer is reset only when it fires.
struct KeepAlive {
    every: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

impl KeepAlive {
    fn new(every: Duration) -> Self {
        Self {
            every,
            last: Instant::now(),
            timer: Box::pin(tokio::time::sleep(every)),
        }
    }

    fn wrote(&mut self) {
        self.last = Instant::now();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let silent = self.last.elapsed();
            let due = silent >= self.every;
            if due {
                self.last = Instant::now();
            }
            self.timer.as_mut().reset(self.last + self.every);
            if due {
                return Poll::Ready(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::BodyDataStream;
    use bytes::Bytes;
    use futures::StreamExt;
    use futures::stream::BoxStream;
    use shoal_protocol::{EventId, StreamId};
    use tokio::sync::mpsc;

    fn channel() -> (mpsc::Sender<Bytes>, BoxStream<'static, Bytes>) {
        let (sender, mut receiver) = mpsc::channel(1);
        let frames = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx)).boxed();
        (sender, frames)
    }

    fn body_of(mut receiver: mpsc::Receiver<Bytes>) -> BodyDataStream {
        let frames = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
        let response = super::response(frames, Duration::from_secs(15), ());
        response.into_body().into_data_stream()
    }

    async fn next(body: &mut BodyDataStream) -> Bytes {
        body.next().await.unwrap().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_by_comments() {
        let (sender, frames) = channel();
        let every = Duration::from_secs(15);
        let mut body = super::response(frames, every, ())
            .into_body()
            .into_data_stream();
        let begin = tokio::time::Instant::now();
        tokio::time::advance(Duration::from_secs(10)).await;
        sender.send(super::message(b"{}")).await.unwrap();
        assert_eq!(next(&mut body).await, "event: message\ndata: {}\n\n");
        assert_eq!(next(&mut body).await, ":\n\n");
        assert_eq!(begin.elapsed(), Duration::from_secs(25));
        assert_eq!(next(&mut body).await, ":\n\n");
        assert_eq!(begin.elapsed(), Duration::from_secs(40));
        drop(sender);
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn what_is_ready_together_leaves_in_one_piece() {
        let (sender, receiver) = mpsc::channel(8);
        let mut body = body_of(receiver);
        for data in ["1", "2", "3"] {
            sender.try_send(super::message(data.as_bytes())).unwrap();
        }
        let three = ["1", "2", "3"].map(|data| format!("event: message\ndata: {data}\n\n"));
        assert_eq!(next(&mut body).await, three.concat());
        sender.try_send(super::message(b"4")).unwrap();
        assert_eq!(next(&mut body).await, "event: message\ndata: 4\n\n");
        sender.try_send(super::message(b"5")).unwrap();
        drop(sender);
        assert_eq!(next(&mut body).await, "event: message\ndata: 5\n\n");
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn a_piece_that_is_long_enough_takes_no_more() {
        let (sender, receiver) = mpsc::channel(8);
        let mut body = body_of(receiver);
        let short = Bytes::from(vec![b'1'; super::PIECE / 2]);
        let long = Bytes::from(vec![b'2'; 2 * super::PIECE]);
        for frame in [&short, &long, &short, &short, &short, &long, &short] {
            sender.try_send(frame.clone()).unwrap();
        }
        drop(sender);
        let mut lengths = Vec::new();
        while let Some(piece) = body.next().await {
            lengths.push(piece.unwrap().len() * 2 / super::PIECE);
        }
        assert_eq!(lengths, [1, 4, 2, 1, 4, 1], "in halves of what is enough");
    }

    #[test]
    fn frames_are_what_the_official_sdks_write() {
        let id = EventId {
            epoch: 10,
            stream: StreamId(2),
            sequence: 3,
        };
        assert_eq!(
            super::resumable(id, b"{}"),
            "event: message\nid: a-2-3\ndata: {}\n\n"
        );
        assert_eq!(super::message(b"{}"), "event: message\ndata: {}\n\n");
        assert_eq!(super::endpoint("/m"), "event: endpoint\ndata: /m\n\n");
        assert_eq!(super::prime(id), "id: a-2-3\ndata: \n\n");
        assert_eq!(super::retry(Duration::from_secs(1)), "retry: 1000\n\n");
    }

    #[test]
    fn pretty_printed_json_stays_one_event() {
        assert_eq!(
            super::message(b"{\r\n \"a\": 1\n}"),
            "event: message\ndata: {   \"a\": 1 }\n\n"
        );
    }
}
