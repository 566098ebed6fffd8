use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use futures::poll;
use shoal_ports::{SessionId, SessionTransport};
use shoal_protocol::{Body, Message as McpMessage, TraceContext};
use shoal_telemetry::metrics::{self, Direction, metrics};
use shoal_telemetry::trace::InSpan as _;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::client::{SocketClient, SocketSession};
use super::connection::{HandOverAnswer, SocketConnection};
use super::end::{BINARY, ConnectionEnd, NOT_UTF8, OTHERWISE};
use super::sending::with_member;
use crate::body_budget::BodyPermit;
use crate::era::{self, Selected, VersionHeader};
use crate::incoming::Incoming;
use crate::legacy::{self, OpenedSession, WrittenAnswer};
use crate::media::AnswerForm;
use crate::modern;
use crate::permit::RequestPermit;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;

const SESSION_MEMBER: &str = "mcpSessionId";
/// The bytes of a control frame besides its payload.
pub(super) const CONTROL_FRAME: usize = 6;

impl SocketConnection {
    pub(super) async fn hear(
        &mut self,
        read: Option<Result<Message, Error>>,
    ) -> Result<(), ConnectionEnd> {
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
            Some(Ok(Message::Close(_) | Message::Frame(_))) | None => Err(ConnectionEnd::Gone),
            Some(Err(error)) => Err(self.broken(&error)),
        }
    }

    fn broken(&mut self, error: &Error) -> ConnectionEnd {
        match error {
            Error::Capacity(_) => {
                let limit = self.client.edge.config.limits.body_bytes;
                let why = Refusal::BodyTooLarge { limit };
                ConnectionEnd::Close(CloseCode::Size, why.to_string().into())
            }
            Error::Utf8(_) => NOT_UTF8,
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => ConnectionEnd::Gone,
            Error::Protocol(error) => {
                ConnectionEnd::Close(CloseCode::Protocol, error.to_string().into())
            }
            _ => match self.socket.get_mut().refusal() {
                Some(why @ Refusal::BodyTooSlow { .. }) => {
                    ConnectionEnd::Close(CloseCode::Policy, why.to_string().into())
                }
                Some(why) => ConnectionEnd::Close(CloseCode::Again, why.to_string().into()),
                None => ConnectionEnd::Gone,
            },
        }
    }

    async fn take(&mut self, text: Bytes, room: Option<BodyPermit>) -> Result<(), ConnectionEnd> {
        let (client, began) = (Arc::clone(&self.client), Instant::now());
        let session = self.session.as_ref().map(|session| session.id.clone());
        let message = match ArrivedMessage::read(&client, began, &text, session.as_ref(), room) {
            Ok(message) => message,
            Err(refused) => return self.write(client.refusal(&refused, began)).await,
        };
        let Some(session) = session else {
            return self.open(message).await;
        };
        let asks = message.asks();
        let mut handing_over = Box::pin(hand_over(client, session, message));
        // Polled once before the next message is read, which preserves the order.
        if let Poll::Ready(said) = poll!(handing_over.as_mut()) {
            return self.say(said?).await;
        }
        let handing_over = tokio::spawn(handing_over);
        if asks {
            self.handed_over.push(handing_over);
            return Ok(());
        }
        // Wait, because the next message may rely on this notification or answer.
        let said = handing_over.await;
        self.say(said.unwrap_or(Ok(None))?).await
    }

    async fn open(&mut self, message: ArrivedMessage) -> Result<(), ConnectionEnd> {
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
}

pub(super) struct ArrivedMessage {
    began: Instant,
    body: Body,
    incoming: Incoming,
    permit: RequestPermit,
    trace: Option<TraceContext>,
}

impl ArrivedMessage {
    pub(super) const fn asks(&self) -> bool {
        !matches!(
            self.body,
            Body::Single(McpMessage::Notification(_) | McpMessage::Response(_))
        )
    }

    /// Parses even a message that the limits refuse, so that the error names the request's id.
    pub(super) fn read(
        client: &SocketClient,
        began: Instant,
        text: &Bytes,
        session: Option<&SessionId>,
        room: Option<BodyPermit>,
    ) -> Result<Self, RefusedMessage> {
        let mut visit = client.visit(None);
        let limits = &client.edge.config.limits;
        let mut permit = RequestPermit::admit(&client.edge.load, &client.principal, limits)
            .map_err(|why| {
                let id = visit.parse(text).ok().and_then(|body| body.request_id());
                RefusedMessage::of(id, why)
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

async fn open(
    client: &SocketClient,
    message: ArrivedMessage,
) -> Result<(SocketSession, Bytes), RefusedMessage> {
    let ArrivedMessage {
        mut body,
        incoming,
        mut permit,
        trace,
        ..
    } = message;
    let visit = client.visit(trace);
    let opening = async {
        client.admit(&visit, &mut body, &mut permit).await?;
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
        Ok((SocketSession { id, events, single }, greeting))
    };
    incoming.end(opening.in_trace(visit.trace.as_ref()).await)
}

pub(super) async fn hand_over(
    client: Arc<SocketClient>,
    session: SessionId,
    message: ArrivedMessage,
) -> HandOverAnswer {
    let ArrivedMessage {
        began,
        mut body,
        incoming,
        mut permit,
        trace,
    } = message;
    let visit = client.visit(trace);
    let handing_over = async {
        client.admit(&visit, &mut body, &mut permit).await?;
        let form = AnswerForm::SessionStream;
        let handing_over = legacy::hand_over_held(&visit, session, body, &mut permit, form);
        let (handed, delivered, _places) = handing_over.await?;
        let text = match handed.write(delivered) {
            WrittenAnswer::Nothing => None,
            WrittenAnswer::Text(text) => Some(text),
            // The call continues. Its client reads the result by the transport with which it opened the
            // session.
            WrittenAnswer::Stream(_) => return Ok(Err(OTHERWISE)),
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
