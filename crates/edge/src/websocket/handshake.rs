use std::str::FromStr as _;
use std::sync::Arc;

use axum::body::Body as HttpBody;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request as HttpRequest, header};
use parking_lot::Mutex;
use shoal_ports::SessionId;
use shoal_protocol::EventId;
use shoal_telemetry::metrics::StreamKind;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::server::create_response;

use super::client::{SocketClient, SocketSession};
use super::connection::serve;
use crate::legacy;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::upgrade::Upgrade;
use crate::visit::Visit;

const PLAIN: &str = "mcp";
const RESUMABLE: &str = "mcp.resume";
/// Prefixes a subprotocol with the token, for clients that cannot set headers.
pub(super) const AUTH: &str = "mcp.auth.";
pub(super) const TOKEN_ONCE: &str = "give the token once";
const SESSION: &str = "mcp.session.";
const AFTER: &str = "mcp.after.";

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    lines.flat_map(|line| line.to_str().unwrap_or_default().split(',').map(str::trim))
}

pub(super) fn named_once<'h>(
    headers: &'h HeaderMap,
    prefix: &str,
    twice: &str,
) -> Result<Option<&'h str>, Refusal> {
    let mut all = offered(headers).filter_map(|protocol| protocol.strip_prefix(prefix));
    let first = all.next();
    match all.next() {
        None => Ok(first),
        Some(_) => Err(Refusal::WebSocketHandshake(twice.to_owned())),
    }
}

struct Offer {
    resumable: bool,
    session: Option<SessionId>,
    after: Option<EventId>,
}

impl Offer {
    fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let refuse = |what: &str| Refusal::WebSocketHandshake(what.to_owned());
        let has = |name| offered(headers).any(|protocol| protocol == name);
        let named = |prefix, twice| named_once(headers, prefix, twice);
        let (session_once, event_once) = ("name the session once", "name the last event once");
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

/// Before the upgrade, refuses a session that cannot be resumed: HTTP can carry the reason.
pub(super) async fn accept(visit: Visit<'_>) -> Result<Response, RefusedMessage> {
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
            Some(SocketSession {
                id,
                events,
                single: None,
            })
        }
        None => None,
    };
    let mut head = visit.head.clone();
    let token = named_once(&visit.head.headers, AUTH, TOKEN_ONCE)?;
    if let Some(token) = token.and_then(|token| format!("Bearer {token}").parse().ok()) {
        let said = head.headers.entry(header::AUTHORIZATION);
        said.or_insert(token);
    }
    let watch = visit.watch();
    let client = Arc::new(SocketClient {
        edge: Arc::clone(edge),
        head,
        principal: visit.principal.clone(),
        grant: Mutex::new(visit.grant.clone()),
        resumable: offer.resumable,
    });
    let held = (permit, edge.load.open(StreamKind::WebSocket));
    let upgrade = Upgrade::to(|connection| serve(client, session, watch, held, connection));
    response.extensions_mut().insert(upgrade);
    Ok(response)
}

fn handshake(head: &Parts) -> Result<http::Response<()>, Refusal> {
    let refuse = |what: &str| Err(Refusal::WebSocketHandshake(what.to_owned()));
    // A body's bytes would be read as frames.
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

/// Base64 of 16 bytes (RFC 6455, 4.1): 22 digits, of which the last has two bits.
fn is_key(text: &[u8]) -> bool {
    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    match text {
        [digits @ .., b'A' | b'Q' | b'g' | b'w', b'=', b'='] => {
            digits.len() == 21 && digits.iter().all(digit)
        }
        _ => false,
    }
}
