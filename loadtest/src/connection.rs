//! An HTTP connection that its caller polls, so that an answer costs one wake-up. Dropping the
//! connection closes the socket at once.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};

use crate::failure::Failure;
use crate::mcp::sse::{Event, Parser};
use crate::target::Target;

const REFUSAL_BYTES: usize = 200;

const NARROW_BYTES: u32 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goodbye {
    Finish,
    /// Resets the connection, which also avoids `TIME_WAIT`.
    Reset,
}

type Wire = Pin<Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>>;

pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` after the connection has ended, because hyper must not poll it again.
    wire: Option<Wire>,
}

impl Connection {
    pub(crate) async fn open(target: &Target, goodbye: Goodbye) -> Result<Self, Failure> {
        Self::open_from(None, target, goodbye).await
    }

    /// Connects from `source`, because one address has only about 28,000 ports for one server.
    pub(crate) async fn open_from(
        source: Option<IpAddr>,
        target: &Target,
        goodbye: Goodbye,
    ) -> Result<Self, Failure> {
        let connecting = async {
            let Some(source) = source else {
                return TcpStream::connect(target.address).await;
            };
            let socket = match source {
                IpAddr::V4(_) => TcpSocket::new_v4(),
                IpAddr::V6(_) => TcpSocket::new_v6(),
            }?;
            socket.bind(SocketAddr::new(source, 0))?;
            socket.connect(target.address).await
        };
        let socket = connecting
            .await
            .map_err(|cause| Failure::transport("connect", cause))?;
        Self::over(socket, goodbye).await
    }

    /// With the smallest receive buffer, the server soon notices a client that does not read.
    pub(crate) async fn open_narrow(target: &Target, goodbye: Goodbye) -> Result<Self, Failure> {
        let socket = if target.address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        };
        let socket = socket.map_err(|cause| Failure::transport("socket", cause))?;
        socket
            .set_recv_buffer_size(NARROW_BYTES)
            .map_err(|cause| Failure::transport("set buffer", cause))?;
        let socket = socket.connect(target.address).await;
        let socket = socket.map_err(|cause| Failure::transport("connect", cause))?;
        Self::over(socket, goodbye).await
    }

    async fn over(socket: TcpStream, goodbye: Goodbye) -> Result<Self, Failure> {
        socket
            .set_nodelay(true)
            .map_err(|cause| Failure::transport("set nodelay", cause))?;
        if goodbye == Goodbye::Reset {
            socket
                .set_zero_linger()
                .map_err(|cause| Failure::transport("set linger", cause))?;
        }
        let (sender, wire) = http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|cause| Failure::transport("handshake", cause))?;
        Ok(Self {
            sender,
            wire: Some(Box::pin(wire)),
        })
    }

    /// Waits for the head of the answer. Any error closes the connection.
    pub(crate) async fn send(mut self, request: Request<Full<Bytes>>) -> Result<Reply, Failure> {
        drive(&mut self.wire, self.sender.ready())
            .await
            .map_err(|cause| Failure::transport("connection closed", cause))?;
        let response = drive(&mut self.wire, self.sender.send_request(request))
            .await
            .map_err(|cause| Failure::transport("send", cause))?;
        let (head, body) = response.into_parts();
        let mut reply = Reply {
            streamed: is_event_stream(&head.headers),
            headers: head.headers,
            connection: self,
            body,
            parser: Parser::default(),
            whole: Vec::new(),
            ended: false,
        };
        if head.status.is_success() {
            Ok(reply)
        } else {
            Err(reply.refusal(head.status).await)
        }
    }
}

/// A JSON body counts as one event without an ID.
pub(crate) struct Reply {
    pub(crate) headers: HeaderMap,
    connection: Connection,
    body: Incoming,
    streamed: bool,
    parser: Parser,
    whole: Vec<u8>,
    ended: bool,
}

impl Reply {
    /// Returns `None` at the end of the body. Cancellation safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.parser.pop() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            match drive(&mut self.connection.wire, self.body.frame()).await {
                Some(Ok(frame)) => {
                    let Some(chunk) = frame.data_ref() else {
                        continue;
                    };
                    if self.streamed {
                        self.parser.push(chunk);
                    } else {
                        self.whole.extend_from_slice(chunk);
                    }
                }
                Some(Err(cause)) => return Err(Failure::transport("body", cause)),
                None => {
                    self.ended = true;
                    if !self.whole.is_empty() {
                        let data = String::from_utf8(std::mem::take(&mut self.whole))
                            .map_err(|_| Failure::Wrong("the body is not UTF-8".to_owned()))?;
                        return Ok(Some(Event {
                            data,
                            ..Event::default()
                        }));
                    }
                }
            }
        }
    }

    /// Includes SSE comments, which are signs of life. Cancellation safe.
    pub(crate) async fn next_bytes(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            match drive(&mut self.connection.wire, self.body.frame()).await {
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

    pub(crate) fn is_streamed(&self) -> bool {
        self.streamed
    }

    /// Returns `None` unless the body was read to its end.
    pub(crate) fn into_connection(self) -> Option<Connection> {
        self.ended.then_some(self.connection)
    }

    async fn refusal(&mut self, status: StatusCode) -> Failure {
        self.streamed = false;
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
            body: body.chars().take(REFUSAL_BYTES).collect(),
        }
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
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
