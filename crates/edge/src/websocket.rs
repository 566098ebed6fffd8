//! WebSocket (RFC 6455) at the MCP endpoint, after the community's draft SEP-1288: a session whose messages go both ways on
//! one connection. `docs/transports.md` has the protocol as clients see it.
//!
//! All that a session says goes on its one stream, as with HTTP+SSE, so one event id says all that a client has. One that
//! asks for the ids loses nothing with its connection: it comes back to any edge, and goes on after the last id.
//!
//! Each message is one text frame or more. Of those that come, so many are handed over at once; what has been read is handed
//! over whatever becomes of the connection.
//!
//! All of the transport is in this file, as that of any other would be: it shows what the seam (`transport.rs`) asks of one.

use std::borrow::Cow;
use std::future::{pending, poll_fn};
use std::io;
use std::str::FromStr as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::Body as HttpBody;
use axum::response::Response;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{SinkExt as _, StreamExt as _, poll};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method as HttpMethod, Request as HttpRequest, header};
use shoal_ports::{
    Delivered, EventStream, Grant, Principal, Scheme, SessionId, SessionTransport, StreamItem,
};
use shoal_protocol::{Body, EventId, Message as McpMessage, TraceContext};
use shoal_telemetry::metrics::{self, Direction, StreamKind, metrics};
use shoal_telemetry::trace::InSpan as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::server::create_response;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;

use crate::backlog::Reader;
use crate::body_budget::BodyPermit;
use crate::era::{self, Selected, VersionHeader};
use crate::incoming::Incoming;
use crate::legacy::{self, OpenedSession};
use crate::load::{OpenStream, StreamPermit};
use crate::metered::{MessageBounds, Metered};
use crate::modern;
use crate::permit::RequestPermit;
use crate::quotas::Places;
use crate::refusal::Refusal;
use crate::refused::Refused;
use crate::single_streams::SingleStream;
use crate::state::EdgeState;
use crate::transport::{ClientTransport, Mount};
use crate::upgrade::{self, Duplex, Upgrade};
use crate::visit::{Visit, request_id};
use crate::{answer, authorize};

/// The subprotocol: MCP messages and nothing else.
const PLAIN: &str = "mcp";
/// The same with ids, so that the client can come back.
const RESUMABLE: &str = "mcp.resume";
/// What clients that have no say in headers put among the subprotocols.
const AUTH: &str = "mcp.auth.";
const SESSION: &str = "mcp.session.";
const AFTER: &str = "mcp.after.";
/// The members that messages of this server have beside those of JSON-RPC.
const SESSION_MEMBER: &str = "mcpSessionId";
const EVENT_MEMBER: &str = "mcpEventId";

/// Messages of one client that are being handed over at once. As long as there are so many, no more are read.
const HANDED_OVER_AT_ONCE: usize = 64;
/// What is read at once; each connection has a buffer of this size.
const READ_AT_ONCE: usize = 8 << 10;
/// Pings without a word from the client after which it is taken for dead.
const UNHEARD: u32 = 2;
/// Bytes of a frame of the server, at most.
const PIECE: usize = 64 << 10;
/// Bytes that wait for the connection, at most: one frame. Without a limit, the answers to pings of a client that reads
/// nothing would wait without end; with it, only the newest ping is answered once the client reads (RFC 6455, 5.5.3).
const WRITTEN_AT_ONCE: usize = 2 * PIECE;
/// Bytes around the payload of a client's control frame.
const CONTROL_FRAME: usize = 6;
/// How long, and how much, a client may go on sending after it was told that the connection ends: closed under it, the
/// connection would be reset, and the reason lost on its way.
const LINGER: Duration = Duration::from_secs(5);
const LINGER_BYTES: usize = 32 << 20;
/// Bytes of a reason that fit into a close frame.
const LONGEST_REASON: usize = 123;

/// WebSocket.
pub(crate) struct WebSocket;

impl ClientTransport for WebSocket {
    /// Also where it is turned off: then that is said, and not that something is wrong with a GET.
    fn mount(edge: &EdgeState, head: &Parts) -> Option<Mount> {
        let asked = head.method == HttpMethod::GET && upgrade::asks_for_websocket(&head.headers);
        (asked && head.uri.path() == edge.config.path).then_some(Mount {
            route: edge.routes.mcp,
            allow: "GET, POST, DELETE, OPTIONS",
        })
    }

    fn token(headers: &HeaderMap) -> Option<(Scheme, &str)> {
        let offered = || offered(headers).find_map(|protocol| protocol.strip_prefix(AUTH));
        authorize::token(headers).or_else(|| Some((Scheme::Bearer, offered()?)))
    }

    async fn answer(visit: Visit<'_>, _: HttpBody) -> Result<Response, Refused> {
        if !visit.edge.config.websocket {
            return Err(Refusal::WebSocketOff.into());
        }
        Box::pin(accept(visit)).await
    }
}

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    lines.flat_map(|line| line.to_str().unwrap_or_default().split(',').map(str::trim))
}

/// What a client asks for when it connects.
struct Offer {
    resumable: bool,
    session: Option<SessionId>,
    after: Option<EventId>,
}

impl Offer {
    fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let refuse = |what: &str| Refusal::WebSocketHandshake(what.to_owned());
        let has = |name| offered(headers).any(|protocol| protocol == name);
        let named = |prefix, twice| {
            let mut all = offered(headers).filter_map(|protocol| protocol.strip_prefix(prefix));
            let first = all.next();
            all.next().map_or(Ok(first), |_| Err(refuse(twice)))
        };
        let (session_once, event_once) = ("name the session once", "name the last event once");
        named(AUTH, "give the token once")?;
        let resumable = has(RESUMABLE);
        if !resumable && !has(PLAIN) {
            return Err(refuse(
                "offer the subprotocol mcp, or mcp.resume, in Sec-WebSocket-Protocol",
            ));
        }
        let session = match (legacy::session_id(headers)?, named(SESSION, session_once)?) {
            (Some(_), Some(_)) => return Err(refuse(session_once)),
            (Some(session), None) => Some(session),
            (None, Some(text)) => Some(legacy::parse_session_id(text)?),
            (None, None) => None,
        };
        let after = match (legacy::cursor(headers)?, named(AFTER, event_once)?) {
            (Some(_), Some(_)) => return Err(refuse(event_once)),
            (Some(after), None) => Some(after),
            (None, Some(text)) => Some(EventId::from_str(text)?),
            (None, None) => None,
        };
        if session.is_some() && !resumable {
            return Err(refuse("who resumes a session must offer mcp.resume"));
        }
        if session.is_none() && after.is_some() {
            return Err(refuse("name the session of the last event"));
        }
        Ok(Self {
            resumable,
            session,
            after,
        })
    }
}

/// Answers the handshake. A session that cannot be resumed is refused here, where HTTP says why.
async fn accept(visit: Visit<'_>) -> Result<Response, Refused> {
    let edge = visit.edge;
    let offer = Offer::of(&visit.head.headers)?;
    let mut response = handshake(visit.head)?.map(|()| HttpBody::empty());
    let protocol = if offer.resumable { RESUMABLE } else { PLAIN };
    let headers = response.headers_mut();
    headers.insert(
        header::SEC_WEBSOCKET_PROTOCOL,
        HeaderValue::from_static(protocol),
    );
    let permit = edge
        .load
        .admit_stream(&visit.principal, &edge.config.limits)?;
    let session = match offer.session {
        Some(id) => {
            let to = legacy::to(&visit, id.clone());
            let events = edge.gateway.listen(&to, offer.after).await?;
            Some(Session {
                id,
                events,
                single: None,
            })
        }
        None => None,
    };
    let mut head = visit.head.clone();
    let token = offered(&visit.head.headers).find_map(|protocol| protocol.strip_prefix(AUTH));
    if let Some(token) = token.and_then(|token| format!("Bearer {token}").parse().ok()) {
        // Pools that ask for the client's token get it whichever way it came.
        let said = head.headers.entry(header::AUTHORIZATION);
        said.or_insert(token);
    }
    let client = Arc::new(Client {
        edge: Arc::clone(edge),
        head,
        principal: visit.principal.clone(),
        grant: visit.grant.clone(),
        resumable: offer.resumable,
    });
    let held = (permit, edge.load.open(StreamKind::WebSocket));
    let upgrade = Upgrade::to(|connection| serve(client, session, held, connection));
    response.extensions_mut().insert(upgrade);
    Ok(response)
}

fn handshake(head: &Parts) -> Result<http::Response<()>, Refusal> {
    let refuse = |what: &str| Err(Refusal::WebSocketHandshake(what.to_owned()));
    // Its bytes would be read as frames.
    if has_body(&head.headers) {
        return refuse("the handshake must have no body");
    }
    if let Some(key) = head.headers.get(header::SEC_WEBSOCKET_KEY)
        && !is_key(key.as_bytes())
    {
        return refuse("Sec-WebSocket-Key must be 16 bytes in Base64");
    }
    let mut request = HttpRequest::new(());
    *request.method_mut() = head.method.clone();
    *request.version_mut() = head.version;
    request.headers_mut().clone_from(&head.headers);
    create_response(&request).map_err(|error| match error {
        Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader) => {
            Refusal::WebSocketVersion
        }
        error => Refusal::WebSocketHandshake(error.to_string()),
    })
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

/// Whether these are 16 bytes in Base64 (RFC 6455, 4.1): 22 digits, of which the last stands for two bits, and the padding.
fn is_key(text: &[u8]) -> bool {
    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    match text {
        [digits @ .., b'A' | b'Q' | b'g' | b'w', b'=', b'='] => {
            digits.len() == 21 && digits.iter().all(digit)
        }
        _ => false,
    }
}

/// Whoever is at the other end.
struct Client {
    edge: Arc<EdgeState>,
    /// The head of the handshake.
    head: Parts,
    principal: Principal,
    /// What it showed in the handshake, if that was more than who it is.
    grant: Option<Arc<Grant>>,
    /// Whether it can come back, since it is told ids.
    resumable: bool,
}

impl Client {
    /// A visit for a message with this span.
    fn visit(&self, trace: Option<TraceContext>) -> Visit<'_> {
        Visit {
            edge: &self.edge,
            head: &self.head,
            principal: self.principal.clone(),
            grant: self.grant.clone(),
            trace,
            places: Places::default(),
        }
    }

    /// Counts a message against all quotas. There is no request for it that was counted by its address.
    async fn count(
        &self,
        visit: &Visit<'_>,
        body: &Body,
        permit: &mut RequestPermit,
    ) -> Result<(), Refusal> {
        let proxies = &self.edge.config.trusted_proxies;
        permit.places[0] = self.edge.quotas.arrive(&self.head, proxies).await?;
        visit.count(body, permit).await
    }

    /// Whoever gets what is written.
    fn reader(&self) -> Reader {
        self.visit(None).reader()
    }

    /// A refusal as a message.
    fn refusal(&self, refused: &Refused, began: Instant) -> Bytes {
        refused.count(&self.edge.recorder, began);
        answer::refusal_text(refused)
    }

    /// Ready when the node drains, and the client is to go: not all at once.
    async fn sent_away(self: Arc<Self>) {
        self.edge.drain.cancelled().await;
        sleep(self.edge.share_of_return()).await;
    }
}

/// The session of a connection.
struct Session {
    id: SessionId,
    events: EventStream,
    /// Of a client that cannot come back: a drain waits for what is under way, and the session ends with the connection.
    single: Option<(SingleStream, OpenedSession)>,
}

impl Session {
    /// Fires when whoever drains the node sends a client away that cannot come back.
    fn sent_away(&self) -> Option<CancellationToken> {
        self.single.as_ref().map(|(single, _)| single.end())
    }
}

/// How a connection ends.
enum End {
    /// The client has left, or cannot be reached.
    Gone,
    /// It is told why.
    Close(CloseCode, Cow<'static, str>),
}

impl End {
    const fn close(code: CloseCode, why: &'static str) -> Self {
        Self::Close(code, Cow::Borrowed(why))
    }
}

/// What is to be written.
type Said = Result<Option<Bytes>, End>;

/// A connection after its handshake.
struct Connection {
    client: Arc<Client>,
    socket: WebSocketStream<Metered>,
    session: Option<Session>,
    /// Messages that are being handed over. Dropped, they go on.
    handed_over: FuturesUnordered<JoinHandle<Said>>,
    /// Pings in a row before each of which the client was silent.
    unheard: u32,
}

/// Serves a connection to its end.
async fn serve(
    client: Arc<Client>,
    session: Option<Session>,
    _held: (StreamPermit, OpenStream),
    connection: Box<dyn Duplex>,
) {
    let edge = &client.edge;
    let limit = edge.config.limits.body_bytes;
    let bounds = MessageBounds {
        bytes: limit,
        within: edge.config.timing.body,
        budget: Arc::clone(&edge.budget),
        principal: client.principal.clone(),
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_AT_ONCE)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITTEN_AT_ONCE)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let metered = Metered::new(connection, bounds);
    let socket = WebSocketStream::from_raw_socket(metered, Role::Server, Some(config)).await;
    let mut connection = Connection {
        client,
        socket,
        session,
        handed_over: FuturesUnordered::new(),
        unheard: 0,
    };
    let end = connection.run().await;
    connection.end(end).await;
}

impl Connection {
    async fn run(&mut self) -> End {
        match self.steps().await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn steps(&mut self) -> Result<std::convert::Infallible, End> {
        let timing = self.client.edge.config.timing.clone();
        let mut pings = interval(timing.keep_alive);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let mut sent_away: BoxFuture<'_, ()> = Box::pin(Arc::clone(&self.client).sent_away());
        let mut late = Box::pin(sleep(timing.body));
        let mut expired = Box::pin(self.client.visit(None).expired());
        loop {
            let (opened, resumable) = (self.session.is_some(), self.client.resumable);
            let reads = self.reads();
            let quiet = self.session.as_ref().and_then(Session::sent_away);
            tokio::select! {
                item = next_item(self.session.as_mut()) => self.tell(item).await?,
                Some(said) = self.handed_over.next() => {
                    let said = said.unwrap_or(Ok(None))?;
                    self.say(said).await?;
                }
                read = self.socket.next(), if reads => self.hear(read).await?,
                _ = pings.tick() => self.ping().await?,
                () = &mut sent_away, if resumable || !opened => return Err(AWAY),
                () = cancelled(quiet) => return Err(AWAY),
                () = &mut expired => return Err(EXPIRED),
                () = &mut late, if !opened => return Err(NOT_OPENED),
            }
        }
    }

    /// Whether there may be one more message that is being handed over.
    fn reads(&self) -> bool {
        self.handed_over.len() < HANDED_OVER_AT_ONCE
    }

    /// Writes what the session says.
    async fn tell(&mut self, item: Option<StreamItem>) -> Result<(), End> {
        match item {
            Some(StreamItem::Event { id, data }) => {
                let text = match self.client.resumable {
                    true => with_member(EVENT_MEMBER, &id.to_string(), &data),
                    false => data,
                };
                // It is in the log, and the client comes back for it, if it can.
                let kept = self.client.reader().keep(text);
                self.write(kept.map_err(|_| UNREAD)?).await?;
                if let Some((single, _)) = self.session.as_ref().and_then(|it| it.single.as_ref()) {
                    single.passed(id);
                }
                Ok(())
            }
            // What is said in passing may be lost.
            Some(StreamItem::Passing { data }) => match self.client.reader().keep(data) {
                Ok(text) => self.write(text).await,
                Err(_) => Ok(()),
            },
            Some(StreamItem::Prime { .. }) => Ok(()),
            Some(StreamItem::Retry(_) | StreamItem::Moved) => {
                let edge = &self.client.edge;
                if !edge.drain.is_cancelled() {
                    return Err(MOVED);
                }
                // It was the session's node too that goes.
                sleep(edge.share_of_return()).await;
                Err(AWAY)
            }
            None => Err(OVER),
        }
    }

    async fn say(&mut self, text: Option<Bytes>) -> Result<(), End> {
        match text {
            Some(text) => self.write(text).await,
            None => Ok(()),
        }
    }

    /// Writes a message, which counts as waiting until the connection has all of it.
    async fn write(&mut self, text: Bytes) -> Result<(), End> {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        metrics()
            .http
            .bytes(Direction::Out, metrics::Body::WebSocket, bytes);
        let written = match text.len() <= PIECE {
            true => {
                let text = Utf8Bytes::try_from(text).map_err(|_| NOT_TEXT)?;
                self.put(Message::Text(text)).await
            }
            false => self.write_in_pieces(&text).await,
        };
        written.map_err(|_| End::Gone)
    }

    /// The socket's buffer would stay as large as the largest frame.
    async fn write_in_pieces(&mut self, text: &Bytes) -> Result<(), Error> {
        let mut rest = text.clone();
        let mut kind = Data::Text;
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE));
            let frame = Frame::message(piece, OpCode::Data(kind), rest.is_empty());
            self.put(Message::Frame(frame)).await?;
            kind = Data::Continue;
        }
        Ok(())
    }

    /// Writes a frame. What waits before it, such as answers to pings, goes first: there is room for one frame.
    async fn put(&mut self, frame: Message) -> Result<(), Error> {
        self.socket.flush().await?;
        self.socket.send(frame).await
    }

    async fn ping(&mut self) -> Result<(), End> {
        // Who is not read cannot be heard, and who sends a long message is not dead.
        let silent = !self.socket.get_mut().heard() && self.reads();
        self.unheard = if silent { self.unheard + 1 } else { 0 };
        if self.unheard > UNHEARD {
            return Err(End::Gone);
        }
        let ping = self.put(Message::Ping(Bytes::new())).await;
        ping.map_err(|_| End::Gone)
    }

    /// Takes what the client sends.
    async fn hear(&mut self, read: Option<Result<Message, Error>>) -> Result<(), End> {
        match read {
            Some(Ok(Message::Text(text))) => {
                let text = Bytes::from(text);
                let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
                metrics()
                    .http
                    .bytes(Direction::In, metrics::Body::WebSocket, bytes);
                let room = self.socket.get_mut().took(text.len());
                self.take(text, room).await
            }
            Some(Ok(Message::Ping(payload) | Message::Pong(payload))) => {
                let bytes = CONTROL_FRAME + payload.len();
                self.socket.get_mut().passed(bytes);
                Ok(())
            }
            Some(Ok(Message::Binary(_))) => Err(BINARY),
            Some(Ok(Message::Close(_) | Message::Frame(_))) | None => Err(End::Gone),
            Some(Err(error)) => Err(self.broken(&error)),
        }
    }

    fn broken(&mut self, error: &Error) -> End {
        match error {
            Error::Capacity(_) => {
                let limit = self.client.edge.config.limits.body_bytes;
                let why = Refusal::BodyTooLarge { limit };
                End::Close(CloseCode::Size, why.to_string().into())
            }
            Error::Utf8(_) => NOT_UTF8,
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => End::Gone,
            Error::Protocol(error) => End::Close(CloseCode::Protocol, error.to_string().into()),
            _ => match self.socket.get_mut().refusal() {
                Some(why @ Refusal::BodyTooSlow { .. }) => {
                    End::Close(CloseCode::Policy, why.to_string().into())
                }
                Some(why) => End::Close(CloseCode::Again, why.to_string().into()),
                None => End::Gone,
            },
        }
    }

    /// Takes a message: into its session, or it opens one.
    async fn take(&mut self, text: Bytes, room: Option<BodyPermit>) -> Result<(), End> {
        let (client, began) = (Arc::clone(&self.client), Instant::now());
        let session = self.session.as_ref().map(|session| session.id.clone());
        let message = match Arrived::read(&client, began, &text, session.as_ref(), room) {
            Ok(message) => message,
            Err(refused) => return self.write(client.refusal(&refused, began)).await,
        };
        let Some(session) = session else {
            return self.open(message).await;
        };
        let asks = message.asks();
        let mut handing_over = Box::pin(hand_over(client, session, message));
        // Its first step is done before the next message is read: in a session of this node, that is their order.
        if let Poll::Ready(said) = poll!(handing_over.as_mut()) {
            return self.say(said?).await;
        }
        let handing_over = tokio::spawn(handing_over);
        if asks {
            self.handed_over.push(handing_over);
            return Ok(());
        }
        // What only tells may be what the next message relies on.
        let said = handing_over.await;
        self.say(said.unwrap_or(Ok(None))?).await
    }

    /// Opens a session with its first message.
    async fn open(&mut self, message: Arrived) -> Result<(), End> {
        let (client, began) = (Arc::clone(&self.client), message.began);
        let said = match open(&client, message).await {
            Ok((session, greeting)) => {
                let greeting = match client.resumable {
                    true => with_member(SESSION_MEMBER, session.id.as_str(), &greeting),
                    false => greeting,
                };
                self.session = Some(session);
                greeting
            }
            Err(refused) => client.refusal(&refused, began),
        };
        self.write(said).await
    }

    /// Tells the client why, and lets the connection end without losing that.
    async fn end(mut self, end: End) {
        let _ = timeout(LINGER, async {
            match end {
                // What answers the client's own farewell is on its way.
                End::Gone => {
                    let _ = self.socket.flush().await;
                    io::Result::Ok(())
                }
                End::Close(code, why) => {
                    self.say_the_rest().await;
                    let reason = short(&why).into();
                    let told = self.farewell(CloseFrame { code, reason }).await;
                    if told.is_err() {
                        return Ok(());
                    }
                    if matches!(code, CloseCode::Away | CloseCode::Restart) {
                        self.hear_the_rest().await;
                    }
                    linger(self.socket.into_inner().into_inner()).await
                }
            }
        })
        .await;
    }

    async fn farewell(&mut self, why: CloseFrame) -> Result<(), Error> {
        self.socket.flush().await?;
        self.socket.close(Some(why)).await
    }

    /// What the client said before it heard that it is sent away goes to its session, which lives on: the answers are
    /// events, for which the client comes back.
    async fn hear_the_rest(&mut self) {
        let Some(Session {
            id, single: None, ..
        }) = self.session.take()
        else {
            return;
        };
        loop {
            if !self.reads() {
                self.handed_over.next().await;
                continue;
            }
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let room = self.socket.get_mut().took(text.len());
                    self.hand_over_unanswered(&id, Bytes::from(text), room)
                        .await;
                }
                Some(Ok(Message::Ping(payload) | Message::Pong(payload))) => {
                    let bytes = CONTROL_FRAME + payload.len();
                    self.socket.get_mut().passed(bytes);
                }
                _ => return,
            }
        }
    }

    /// Hands a message over, of which nothing can be said any more on this connection.
    async fn hand_over_unanswered(
        &mut self,
        session: &SessionId,
        text: Bytes,
        room: Option<BodyPermit>,
    ) {
        let (client, began) = (Arc::clone(&self.client), Instant::now());
        match Arrived::read(&client, began, &text, Some(session), room) {
            Ok(message) => {
                let asks = message.asks();
                let handing_over = tokio::spawn(hand_over(client, session.clone(), message));
                if asks {
                    self.handed_over.push(handing_over);
                } else {
                    let _ = handing_over.await;
                }
            }
            Err(refused) => refused.count(&client.edge.recorder, began),
        }
    }

    /// What was handed over may have been refused, which no stream would tell.
    async fn say_the_rest(&mut self) {
        while let Some(said) = self.handed_over.next().await {
            let said = said.unwrap_or(Ok(None)).unwrap_or(None);
            if self.say(said).await.is_err() {
                return;
            }
        }
    }
}

/// The client has all of it once it hangs up.
async fn linger(mut connection: Box<dyn Duplex>) -> io::Result<()> {
    connection.shutdown().await?;
    let mut scrap = vec![0; READ_AT_ONCE];
    let mut taken = 0;
    while taken < LINGER_BYTES {
        match connection.read(&mut scrap).await? {
            0 => break,
            length => taken += length,
        }
    }
    Ok(())
}

const AWAY: End = End::close(
    CloseCode::Away,
    "this node is going away; connect again, and resume the session if you can",
);
const MOVED: End = End::close(
    CloseCode::Restart,
    "the session moves to another node; connect again after the last event",
);
const OVER: End = End::close(
    CloseCode::Normal,
    "the stream ends here: the session is over, or read elsewhere, or was read too slowly",
);
const EXPIRED: End = End::close(
    CloseCode::Policy,
    "the access token is over; connect again with a new one, and resume the session if you can",
);
const UNREAD: End = End::close(
    CloseCode::Again,
    "too much waits to be read; connect again after the last event, and read faster",
);
const BINARY: End = End::close(CloseCode::Unsupported, "send messages as text frames");
const NOT_UTF8: End = End::close(CloseCode::Invalid, "text frames must be UTF-8");
const NOT_TEXT: End = End::close(CloseCode::Error, "a message of the server is not UTF-8");
const NOT_OPENED: End = End::close(CloseCode::Policy, "send initialize soon after you connect");
const OTHERWISE: End = End::close(
    CloseCode::Policy,
    "the session was opened over Streamable HTTP; go on with it there",
);

/// The next item of the session, once there is one.
async fn next_item(session: Option<&mut Session>) -> Option<StreamItem> {
    match session {
        Some(session) => poll_fn(|cx| session.events.items.poll_recv(cx)).await,
        None => pending().await,
    }
}

async fn cancelled(token: Option<CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => pending().await,
    }
}

/// A message that has been read.
struct Arrived {
    began: Instant,
    body: Body,
    incoming: Incoming,
    permit: RequestPermit,
    trace: Option<TraceContext>,
}

impl Arrived {
    /// Whether it has to be answered.
    const fn asks(&self) -> bool {
        !matches!(
            self.body,
            Body::Single(McpMessage::Notification(_) | McpMessage::Response(_))
        )
    }

    /// Counts a message and parses it. One for which there is no place is read for its id: nothing else would tell its
    /// client which one it was.
    fn read(
        client: &Client,
        began: Instant,
        text: &Bytes,
        session: Option<&SessionId>,
        room: Option<BodyPermit>,
    ) -> Result<Self, Refused> {
        let mut visit = client.visit(None);
        let limits = &client.edge.config.limits;
        let mut permit = RequestPermit::admit(&client.edge.load, &client.principal, limits)
            .map_err(|why| {
                let id = visit.parse(text).ok().and_then(|body| request_id(&body));
                Refused::of(id, why)
            })?;
        permit.room = room;
        let (incoming, body) = Incoming::begin(&mut visit, began, text, session, &mut permit)?;
        let trace = visit.trace;
        Ok(Self {
            began,
            body,
            incoming,
            permit,
            trace,
        })
    }
}

/// Opens a session: its first message must be `initialize`.
async fn open(client: &Client, message: Arrived) -> Result<(Session, Bytes), Refused> {
    let Arrived {
        body,
        incoming,
        mut permit,
        trace,
        ..
    } = message;
    let visit = client.visit(trace);
    let opening = async {
        client.count(&visit, &body, &mut permit).await?;
        let initialize = match era::select(VersionHeader::Absent, false, &body)? {
            Selected::Modern(meta) => {
                return Err(Refusal::Modern(modern::not_by_websocket(&meta)).into());
            }
            Selected::Legacy => legacy::initialize_of(body).ok_or(Refusal::NotInitialized)?,
        };
        let transport = SessionTransport::SingleStream;
        let (id, greeting) = legacy::open_session(&visit, initialize, transport, &permit).await?;
        let to = legacy::to(&visit, id.clone());
        let ending = (!client.resumable).then(|| OpenedSession::new(&client.edge, to.clone()));
        let events = client.edge.gateway.listen(&to, None).await?;
        let streams = client.edge.load.single_streams();
        let single = ending.map(|ending| (streams.begin(&id, events.cursor), ending));
        Ok((Session { id, events, single }, greeting))
    };
    incoming.end(opening.in_trace(visit.trace.as_ref()).await)
}

/// Hands a message over to its session.
async fn hand_over(client: Arc<Client>, session: SessionId, message: Arrived) -> Said {
    let Arrived {
        began,
        body,
        incoming,
        mut permit,
        trace,
    } = message;
    let visit = client.visit(trace);
    let handing_over = async {
        client.count(&visit, &body, &mut permit).await?;
        let (handed, delivered) = legacy::hand_over(&visit, session, body).await?;
        let text = match delivered {
            Delivered::Accepted => None,
            Delivered::Json(text) => Some(text),
            // Its call goes on, and its client may read that where it opened the session.
            Delivered::Stream(_) => return Ok(Err(OTHERWISE)),
        };
        if let Some(record) = &permit.record {
            record.answered(text.as_deref().unwrap_or_default());
        }
        let kept = text.map(|text| handed.keep(&visit, text)).transpose()?;
        Ok(Ok(kept))
    };
    match incoming.end(handing_over.in_trace(visit.trace.as_ref()).await) {
        Ok(said) => said,
        Err(refused) => Ok(Some(client.refusal(&refused, began))),
    }
}

/// A message of the server, or a batch of them, with one more member in front; `value` needs no escapes.
fn with_member(name: &str, value: &str, text: &Bytes) -> Bytes {
    let Some(at) = memchr::memchr(b'{', text) else {
        return text.clone();
    };
    let (before, rest) = text.split_at(at + 1);
    let mut with = BytesMut::with_capacity(text.len() + name.len() + value.len() + 6);
    with.put_slice(before);
    with.put_slice(b"\"");
    with.put_slice(name.as_bytes());
    with.put_slice(b"\":\"");
    with.put_slice(value.as_bytes());
    with.put_slice(b"\",");
    with.put_slice(rest);
    with.freeze()
}

/// As much of a reason as fits.
fn short(reason: &str) -> String {
    let mut end = reason.len().min(LONGEST_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].to_owned()
}
