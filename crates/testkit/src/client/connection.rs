//! An HTTP connection that its caller polls, so that an answer costs one wake-up. Dropping the
//! connection closes the socket at once.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sse_stream::SseStream;
use tokio::net::{TcpSocket, TcpStream};

use super::failure::Failure;
use super::target::Target;

const NARROW_BYTES: u32 = 4096;

/// How a connection ends when its client drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goodbye {
    /// Closes the connection in order.
    Finish,
    /// Resets the connection, which also avoids `TIME_WAIT`.
    Reset,
}

type Wire = Pin<Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>>;

/// A request, whose body is in memory.
pub type Outgoing = Request<Full<Bytes>>;

/// A connection for one exchange at a time.
#[derive(Debug)]
pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` after the connection has ended, because hyper must not poll it again.
    wire: Option<Wire>,
}

impl Connection {
    /// Connects to the server.
    ///
    /// # Errors
    ///
    /// [`Failure::Transport`].
    pub async fn open(target: &Target, goodbye: Goodbye) -> Result<Self, Failure> {
        Self::open_from(None, target, goodbye).await
    }

    /// Connects from `source`, because one address has only about 28,000 ports for one server.
    pub async fn open_from(
        source: Option<IpAddr>,
        target: &Target,
        goodbye: Goodbye,
    ) -> Result<Self, Failure> {
        let bind = |socket: &TcpSocket| match source {
            Some(source) => socket.bind(SocketAddr::new(source, 0)),
            None => Ok(()),
        };
        Self::over(target, goodbye, bind).await
    }

    /// With the smallest receive buffer, the server soon notices a client that does not read.
    pub async fn open_narrow(target: &Target, goodbye: Goodbye) -> Result<Self, Failure> {
        let narrow = |socket: &TcpSocket| socket.set_recv_buffer_size(NARROW_BYTES);
        Self::over(target, goodbye, narrow).await
    }

    async fn over(
        target: &Target,
        goodbye: Goodbye,
        prepare: impl FnOnce(&TcpSocket) -> io::Result<()>,
    ) -> Result<Self, Failure> {
        let socket = socket(target, goodbye, prepare).await?;
        let (sender, wire) = http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|cause| Failure::transport("handshake", cause))?;
        Ok(Self {
            sender,
            wire: Some(Box::pin(wire)),
        })
    }

    /// Waits for the head of the answer. Any error closes the connection.
    pub async fn send(self, request: Outgoing) -> Result<Reply, Failure> {
        self.try_send(request).await.map_err(|(failure, _)| failure)
    }

    /// Like `send`, but returns a request that was not sent.
    pub(super) async fn try_send(
        mut self,
        request: Outgoing,
    ) -> Result<Reply, (Failure, Option<Outgoing>)> {
        if let Err(cause) = drive(&mut self.wire, self.sender.ready()).await {
            let failure = Failure::transport("connection closed", cause);
            return Err((failure, Some(request)));
        }
        let response = drive(&mut self.wire, self.sender.try_send_request(request))
            .await
            .map_err(|mut failed| {
                let unsent = failed.take_message();
                (Failure::transport("send", describe(failed.error())), unsent)
            })?;
        let (head, body) = response.into_parts();
        let streamed = is_event_stream(&head.headers) && head.status.is_success();
        let mut reply = Reply {
            headers: head.headers,
            connection: self,
            body: Body::Raw(body),
            streamed,
            ended: false,
        };
        if head.status.is_success() {
            Ok(reply)
        } else {
            Err((reply.refusal(head.status).await, None))
        }
    }
}

async fn socket(
    target: &Target,
    goodbye: Goodbye,
    prepare: impl FnOnce(&TcpSocket) -> io::Result<()>,
) -> Result<TcpStream, Failure> {
    let connecting = async {
        let socket = match target.address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        prepare(&socket)?;
        let stream = socket.connect(target.address).await?;
        stream.set_nodelay(true)?;
        if goodbye == Goodbye::Reset {
            stream.set_zero_linger()?;
        }
        Ok::<_, io::Error>(stream)
    };
    connecting
        .await
        .map_err(|cause| Failure::transport("connect", cause))
}

/// Opens a connection for other bytes than `hyper`'s. With the smallest receive buffer, the server soon notices a client
/// that does not read.
pub async fn narrow_socket(target: &Target) -> Result<TcpStream, Failure> {
    let narrow = |socket: &TcpSocket| socket.set_recv_buffer_size(NARROW_BYTES);
    socket(target, Goodbye::Reset, narrow).await
}

/// An event of a stream, or the body of another answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The id, with which a client resumes the stream.
    pub id: Option<String>,
    /// Empty for a priming event.
    pub data: String,
    /// The pause before a client connects again.
    pub retry_ms: Option<u64>,
}

/// An answer. A JSON body counts as one event without an ID.
pub struct Reply {
    /// The headers of the answer.
    pub headers: HeaderMap,
    connection: Connection,
    body: Body,
    streamed: bool,
    ended: bool,
}

enum Body {
    Raw(Incoming),
    Events(SseStream<Incoming>),
    Taken,
}

impl Reply {
    /// Returns `None` at the end of the body. Cancellation safe if the answer is a stream.
    pub async fn next(&mut self) -> Result<Option<Event>, Failure> {
        if self.ended {
            return Ok(None);
        }
        if !self.streamed {
            return self.whole().await;
        }
        if let Body::Raw(_) = &self.body
            && let Body::Raw(body) = std::mem::replace(&mut self.body, Body::Taken)
        {
            self.body = Body::Events(SseStream::new(body));
        }
        let Body::Events(events) = &mut self.body else {
            return Ok(None);
        };
        match drive(&mut self.connection.wire, events.next()).await {
            Some(Ok(event)) => Ok(Some(Event {
                id: event.id,
                data: event.data.unwrap_or_default(),
                retry_ms: event.retry,
            })),
            Some(Err(cause @ sse_stream::Error::Body(_))) => Err(Failure::transport("body", cause)),
            Some(Err(cause)) => Err(Failure::Wrong(format!("not an event: {cause}"))),
            None => {
                self.ended = true;
                Ok(None)
            }
        }
    }

    async fn whole(&mut self) -> Result<Option<Event>, Failure> {
        let mut whole = Vec::new();
        while let Some(chunk) = self.next_bytes().await? {
            whole.extend_from_slice(&chunk);
        }
        self.ended = true;
        if whole.is_empty() {
            return Ok(None);
        }
        let data = String::from_utf8(whole)
            .map_err(|_| Failure::Wrong("the body is not UTF-8".to_owned()))?;
        Ok(Some(Event {
            data,
            ..Event::default()
        }))
    }

    /// Returns bytes as they arrive, with SSE comments, for callers that wait for signs of life and read no events.
    /// Cancellation safe.
    pub async fn next_bytes(&mut self) -> Result<Option<Bytes>, Failure> {
        let Body::Raw(body) = &mut self.body else {
            return Ok(None);
        };
        loop {
            match drive(&mut self.connection.wire, body.frame()).await {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(cause)) => return Err(Failure::transport("body", cause)),
                None => return Ok(None),
            }
        }
    }

    /// Whether the answer is a stream of events.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.streamed
    }

    /// Returns `None` unless the body was read to its end.
    #[must_use]
    pub fn into_connection(self) -> Option<Connection> {
        self.ended.then_some(self.connection)
    }

    async fn refusal(&mut self, status: StatusCode) -> Failure {
        let body = match self.next().await {
            Ok(Some(event)) => event.data,
            Ok(None) => String::new(),
            Err(failure) => failure.to_string(),
        };
        Failure::Status {
            status: status.as_u16(),
            retry_after_s: self
                .headers
                .get(header::RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.parse().ok()),
            body,
        }
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

/// Returns an error with its causes.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

async fn drive<F: Future>(wire: &mut Option<Wire>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(output);
        }
        if let Some(open) = wire
            && open.as_mut().poll(context).is_ready()
        {
            *wire = None;
        }
        future.as_mut().poll(context)
    })
    .await
}
