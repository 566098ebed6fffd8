//! Serves one connection in the protocol of its first bytes.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures::future::{Either, ready};
use http::header::CONTENT_LENGTH;
use http::{Method, StatusCode};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use shoal_edge::{Connection, Peer, Upgrade, Writing};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::ending::{Ending, Idling};
use super::refusal::HeadLimits;
use super::secure::HttpTls;
use super::socket::HttpSocket;
use super::stream::WatchedStream;
use super::streams::{self, HttpStreams};
use super::upgraded::Upgraded;
use super::wire::{HttpWire, Secured};
use super::{HttpLimits, LAST_REQUEST, RequestService};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause between checks of a connection that has sent only part of [`PREFACE`].
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
const LEAST_BUFFER: usize = 8192;
const HYPER_HEADERS: usize = 100;

pub(super) struct Protocols<S> {
    http1: http1::Builder,
    http2: Http2,
    service: S,
    header_timeout: Duration,
    write_timeout: Duration,
    head: HeadLimits,
    tls: Option<HttpTls>,
}

/// Each connection needs its own builder with its own executor.
struct Http2 {
    requests: u32,
    header_list: u32,
}

impl Http2 {
    fn builder(&self, streams: HttpStreams) -> http2::Builder<HttpStreams> {
        let mut http2 = http2::Builder::new(streams);
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.requests)
            .max_header_list_size(self.header_list)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT);
        http2
    }
}

impl<S: RequestService> Protocols<S> {
    pub(super) fn new(service: S, limits: &HttpLimits, tls: Option<HttpTls>) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            // hyper counts this time from the end of the last answer, so it limits idle time. `WatchedStream` limits
            // the time of a head, from its first byte.
            .header_read_timeout(limits.idle_timeout.max(limits.header_timeout))
            .max_buf_size(limits.header_bytes.max(LEAST_BUFFER));
        // Calling `max_headers`, even with hyper's default, makes hyper fill a table of that size for each request.
        if limits.headers != HYPER_HEADERS {
            http1.max_headers(limits.headers);
        }
        Self {
            http1,
            http2: Http2 {
                requests: limits.requests_per_connection,
                header_list: u32::try_from(limits.header_bytes).unwrap_or(u32::MAX),
            },
            service,
            header_timeout: limits.header_timeout,
            head: HeadLimits::of(limits),
            write_timeout: limits.write_timeout,
            tls,
        }
    }

    pub(super) async fn serve(&self, stream: TcpStream, ending: Ending) {
        let idling = ending.idling();
        let address = stream.peer_addr().ok();
        let writing = Writing::default();
        let too_late = async {
            ending.closing().await;
            sleep(LAST_REQUEST).await;
        };
        let opened = tokio::select! {
            // A request that has arrived must be served.
            biased;
            opened = self.open(stream, &writing) => opened,
            () = too_late => return,
        };
        let Some((http2, wire)) = opened else {
            return;
        };
        let connection = Connection {
            peer: Arc::new(Peer {
                address,
                certificate: wire.certificate(),
                over_tls: self.tls.is_some(),
                ..Peer::default()
            }),
            writing: writing.clone(),
        };
        let given_up = poll_fn(|cx| writing.poll_given_up(cx));
        // Both branches box their connection. Otherwise, the task would reserve room for both protocols.
        let ended = if http2 {
            // An HTTP/2 connection does not count as idle from here on, because its end by `GOAWAY` loses no request.
            drop(idling);
            let streams = HttpStreams::new(self.write_timeout, writing.clone());
            let service = service_fn(|request| {
                let (service, peer) = (self.service.clone(), Arc::clone(&connection.peer));
                streams::answer(request, async move |request, writing| {
                    let is_head = request.method() == Method::HEAD;
                    let stream = Connection { peer, writing };
                    let response = service.answer(on(stream, request)).await;
                    Ok::<_, Infallible>(match is_head {
                        true => without_body(response),
                        false => response,
                    })
                })
            });
            let connection = self
                .http2
                .builder(streams)
                .serve_connection(TokioIo::new(wire), service);
            let mut connection = Box::pin(connection);
            tokio::select! {
                ended = ending.watch_http2(connection.as_mut()) => ended,
                () = given_up => return,
            }
        } else {
            let serving = self.serve_http1(wire, &connection, idling, &ending);
            tokio::select! {
                biased;
                ended = serving => ended,
                () = given_up => return,
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    }

    /// `None` if the first bytes are late, or the connection or its TLS handshake fails.
    async fn open(&self, stream: TcpStream, writing: &Writing) -> Option<(bool, HttpWire)> {
        let socket = |stream| HttpSocket::new(stream, writing.clone(), self.write_timeout);
        let Some(tls) = &self.tls else {
            let opened = timeout(self.header_timeout, opens_with_preface(&stream));
            let http2 = opened.await.ok()?.ok()?;
            return Some((http2, HttpWire::Plain(socket(stream))));
        };
        // Boxed, because otherwise connections without TLS would reserve room for the handshake.
        let mut stream = Box::pin(tls.accept(stream, socket)).await?;
        let opened = timeout(self.header_timeout, read_opening(&mut stream));
        let (http2, read) = opened.await.ok()?.ok()?;
        Some((http2, HttpWire::Secured(Box::new(Secured { stream, read }))))
    }

    async fn serve_http1(
        &self,
        stream: HttpWire,
        connection: &Connection,
        idling: Idling,
        ending: &Ending,
    ) -> hyper::Result<()> {
        let (stream, seen) = WatchedStream::new(stream, self.head, self.header_timeout);
        let requests = idling.requests(Arc::clone(&seen));
        let number = AtomicU64::new(0);
        let upgrade = Mutex::new(None);
        let service = service_fn(|request: http::Request<Incoming>| {
            seen.begin_answer(request.version());
            let refusal = seen.refusal(number.fetch_add(1, Ordering::Relaxed));
            requests.answer(match refusal {
                Some(refusal) => Either::Left(ready(refusal.response())),
                // Boxed, because otherwise idle connections would reserve room for this future.
                None => Either::Right(Box::pin(
                    self.answer_http1(on(connection.clone(), request), &upgrade),
                )),
            })
        });
        let connection = self.http1.serve_connection(TokioIo::new(stream), service);
        let mut connection = Box::pin(connection);
        let ended = ending.watch_http1(connection.as_mut()).await;
        let parts = Pin::into_inner(connection).into_parts();
        let (stream, read) = (parts.io.into_inner(), parts.read_buf);
        if let Some(upgrade) = upgrade.into_inner()
            && ended.is_ok()
        {
            drop(requests);
            Box::pin(upgrade.run(Upgraded::new(stream.into_wire(), read))).await;
            return ended;
        }
        tokio::select! {
            () = stream.linger(&ended) => {}
            () = ending.closing() => {}
        }
        ended
    }
}

impl<S: RequestService> Protocols<S> {
    async fn answer_http1(
        &self,
        request: http::Request<Body>,
        upgrade: &Mutex<Option<Upgrade>>,
    ) -> Response {
        let mut response = self.service.answer(request).await;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            *upgrade.lock() = response.extensions_mut().remove();
        }
        response
    }
}

fn on(connection: Connection, mut request: http::Request<Incoming>) -> http::Request<Body> {
    request.extensions_mut().insert(connection);
    request.map(Body::new)
}

/// Drops the body of an answer to `HEAD`. hyper does this over HTTP/1.1 only.
fn without_body(mut response: Response) -> Response {
    if let Some(length) = response.body().size_hint().exact() {
        let headers = response.headers_mut();
        headers.entry(CONTENT_LENGTH).or_insert(length.into());
    }
    response.map(|_| Body::empty())
}

/// Whether a connection begins with the HTTP/2 preface. Leaves the bytes in the socket. hyper-util's detection would
/// copy them in front of all later bytes, and has no timeout.
async fn opens_with_preface(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; PREFACE.len()];
    loop {
        let read = stream.peek(&mut first).await?;
        if read == 0 || first[..read] != PREFACE[..read] {
            return Ok(false);
        }
        if read == PREFACE.len() {
            return Ok(true);
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// The preface decides, whatever ALPN agreed on.
async fn read_opening(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(bool, Bytes)> {
    let mut read = BytesMut::with_capacity(PREFACE.len());
    loop {
        let mut rest = (&mut *stream).take((PREFACE.len() - read.len()) as u64);
        let ended = rest.read_buf(&mut read).await? == 0;
        if ended || read[..] != PREFACE[..read.len()] {
            return Ok((false, read.freeze()));
        }
        if read.len() == PREFACE.len() {
            return Ok((true, read.freeze()));
        }
    }
}
