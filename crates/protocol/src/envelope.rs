use std::borrow::Cow;

use bytes::Bytes;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Method, RawJson, RequestId, RpcError, code, nesting_within};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An HTTP body or a line of stdio.
#[derive(Clone, Debug)]
pub enum Body {
    /// One message.
    Single(Message),
    /// An array (2025-03-26, and lenient clients). Invalid members keep their place.
    Batch(Vec<Result<Message, InvalidMessage>>),
}

impl Body {
    /// Returns the id of the body's only message, if that is a request.
    pub fn request_id(&self) -> Option<RequestId> {
        match self {
            Self::Single(Message::Request(request)) => Some(request.id.clone()),
            _ => None,
        }
    }
}

/// One JSON-RPC message.
#[derive(Clone, Debug)]
pub enum Message {
    /// A request, which gets one answer.
    Request(Request),
    /// A notification.
    Notification(Notification),
    /// A response to Shoal's request.
    Response(Response),
}

/// A JSON-RPC request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The sender's id.
    pub id: RequestId,
    /// The method.
    pub method: Method,
    /// The raw parameters, an object.
    pub params: Option<RawJson>,
}

/// A JSON-RPC notification.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The method.
    pub method: Method,
    /// The raw parameters, an object.
    pub params: Option<RawJson>,
}

/// A JSON-RPC response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The request's id.
    pub id: RequestId,
    /// The request's outcome.
    pub outcome: Outcome,
}

/// A request's outcome.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The raw result.
    Result(RawJson),
    /// The error object.
    Error(RpcError),
}

/// Why a message is invalid.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct InvalidMessage {
    /// The message's id, if readable.
    pub id: Option<RequestId>,
    /// The error for the sender.
    pub error: RpcError,
}

impl InvalidMessage {
    fn request(id: Option<RequestId>, message: impl Into<String>) -> Self {
        Self {
            id,
            error: RpcError::invalid_request(message),
        }
    }
}

impl Body {
    /// Reads a client's body. It may nest at most `max_depth` levels, and member names must be unique.
    ///
    /// # Errors
    /// As [`Body::parse`]; -32602 for parameters that are too long or repeat a member, -32600 for other parts that do.
    /// In a batch, each invalid message has its own error.
    pub fn from_client(text: &Bytes, max_depth: usize) -> Result<Self, InvalidMessage> {
        let check = |message: Message| {
            message.check_unique()?;
            message.check_lengths()?;
            Ok(message)
        };
        Ok(match Self::parse(text, max_depth)? {
            Self::Single(message) => Self::Single(check(message)?),
            Self::Batch(members) => {
                let members = members.into_iter();
                Self::Batch(members.map(|member| member.and_then(check)).collect())
            }
        })
    }

    /// Reads a body that nests at most `max_depth` levels. Accepts faults that the official SDKs accept: a
    /// byte order mark, `"error": null` beside a result, or ids such as `7.0`.
    ///
    /// # Errors
    /// -32700 if the text is not JSON, -32600 if it is not a message. The error has the message's id if readable.
    pub fn parse(text: &Bytes, max_depth: usize) -> Result<Self, InvalidMessage> {
        Self::read(text, max_depth, Repeated::Refused)
    }

    /// Reads a server's body. If the envelope repeats a member, the last one counts, as in the official SDKs.
    ///
    /// # Errors
    /// As [`Body::parse`].
    pub fn from_server(text: &Bytes, max_depth: usize) -> Result<Self, InvalidMessage> {
        Self::read(text, max_depth, Repeated::LastCounts)
    }

    fn read(text: &Bytes, max_depth: usize, repeated: Repeated) -> Result<Self, InvalidMessage> {
        let text = match text.starts_with(BYTE_ORDER_MARK) {
            true => &text.slice(BYTE_ORDER_MARK.len()..),
            false => text,
        };
        if !nesting_within(text, max_depth) {
            return Err(InvalidMessage::request(
                None,
                format!("the message nests deeper than {max_depth} levels"),
            ));
        }
        if text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return parse_batch(text, repeated).map(Self::Batch);
        }
        Message::read(text, repeated).map(Self::Single)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Refused,
    LastCounts,
}

fn parse_batch(
    text: &Bytes,
    repeated: Repeated,
) -> Result<Vec<Result<Message, InvalidMessage>>, InvalidMessage> {
    let members: Vec<&RawValue> = serde_json::from_slice(text).map_err(|e| parse_error(&e))?;
    if members.is_empty() {
        return Err(InvalidMessage::request(
            None,
            "a batch must hold at least one message",
        ));
    }
    Ok(members
        .into_iter()
        .map(|member| Message::read(&text.slice_ref(member.get().as_bytes()), repeated))
        .collect())
}

fn parse_error(error: &serde_json::Error) -> InvalidMessage {
    InvalidMessage {
        id: None,
        error: RpcError::new(code::PARSE_ERROR, format!("the body is not JSON: {error}")),
    }
}

impl Message {
    /// Reads one message.
    ///
    /// # Errors
    /// As [`Body::parse`].
    pub fn parse(text: &Bytes) -> Result<Self, InvalidMessage> {
        Self::read(text, Repeated::Refused)
    }

    fn read(text: &Bytes, repeated: Repeated) -> Result<Self, InvalidMessage> {
        // Validates UTF-8 once instead of for each string.
        let read = match std::str::from_utf8(text) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(text),
        };
        let wire: RawEnvelope<'_> = read.map_err(|error: serde_json::Error| {
            if error.is_data() {
                InvalidMessage::request(None, format!("not a JSON-RPC message: {error}"))
            } else {
                parse_error(&error)
            }
        })?;
        wire.without_nulls().into_message(text, repeated)
    }
}

#[derive(Default)]
struct RawEnvelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    repeated: Option<&'static str>,
    /// With two ids, it is unclear which one is the request's.
    has_two_ids: bool,
}

impl<'a> RawEnvelope<'a> {
    fn without_nulls(self) -> Self {
        let says = |value: &&RawValue| value.get() != "null";
        let error = self.error.filter(says);
        // A null that stands alone is the result.
        let result = self.result.filter(|result| error.is_none() || says(result));
        Self {
            result,
            error,
            ..self
        }
    }

    fn into_message(self, text: &Bytes, repeated: Repeated) -> Result<Message, InvalidMessage> {
        let is_refused = repeated == Repeated::Refused && self.repeated.is_some();
        let raw = |value: &RawValue| RawJson::from_valid(text.slice_ref(value.get().as_bytes()));
        // Some clients add `"id": null` to notifications.
        let id = self
            .id
            .filter(|id| id.get() != "null" || self.names_request());
        let id = id.map(|id| RequestId::from_json(&raw(id)));
        let known = id.clone().and_then(Result::ok);
        let known = known.filter(|_| !(is_refused && self.has_two_ids));
        let invalid = |message: &str| InvalidMessage::request(known.clone(), message);
        // Parsers disagree on which of two equal names counts.
        if let Some(name) = self.repeated.filter(|_| is_refused) {
            return Err(invalid(&format!(
                "not a JSON-RPC message: duplicate field `{name}`"
            )));
        }
        if self.jsonrpc.and_then(plain_string).as_deref() != Some("2.0") {
            return Err(invalid("the member \"jsonrpc\" must be \"2.0\""));
        }
        let id = id.transpose().map_err(invalid)?;
        if let Some(method) = self.method {
            let method = plain_string(method)
                .ok_or_else(|| invalid("the member \"method\" must be a string"))?;
            let method = Method::from_name(&method);
            let params = self.params.filter(|params| params.get() != "null").map(raw);
            if params.as_ref().is_some_and(|params| !params.is_object()) {
                return Err(invalid("the member \"params\" must be an object"));
            }
            return Ok(match id {
                Some(id) => Message::Request(Request { id, method, params }),
                None => Message::Notification(Notification { method, params }),
            });
        }
        let outcome = match (self.result, self.error) {
            (Some(result), None) => Outcome::Result(raw(result)),
            (None, Some(error)) => Outcome::Error(RpcError::from_json(&raw(error))),
            (Some(_), Some(_)) => {
                return Err(invalid(
                    "a response must not have both \"result\" and \"error\"",
                ));
            }
            (None, None) => return Err(invalid("the member \"method\" is missing")),
        };
        let id = match (id, &outcome) {
            (Some(id), _) => id,
            (None, Outcome::Error(_)) => RequestId::of_unreadable(),
            (None, Outcome::Result(_)) => return Err(invalid("a response must have an id")),
        };
        Ok(Message::Response(Response { id, outcome }))
    }
}

impl RawEnvelope<'_> {
    fn names_request(&self) -> bool {
        let method = self.method.and_then(plain_string);
        method.is_some_and(|method| !method.starts_with("notifications/"))
    }
}

fn plain_string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(text).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

impl<'de> serde::Deserialize<'de> for RawEnvelope<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WireVisitor)
    }
}

struct WireVisitor;

impl<'de> Visitor<'de> for WireVisitor {
    type Value = RawEnvelope<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut wire = RawEnvelope::default();
        while let Some(key) = map.next_key::<EnvelopeMember>()? {
            let value: &'de RawValue = map.next_value()?;
            let (slot, name) = match key {
                EnvelopeMember::Jsonrpc => (&mut wire.jsonrpc, "jsonrpc"),
                EnvelopeMember::Id => (&mut wire.id, "id"),
                EnvelopeMember::Method => (&mut wire.method, "method"),
                EnvelopeMember::Params => (&mut wire.params, "params"),
                EnvelopeMember::Result => (&mut wire.result, "result"),
                EnvelopeMember::Error => (&mut wire.error, "error"),
                EnvelopeMember::Other => continue,
            };
            if slot.replace(value).is_some() {
                wire.repeated = Some(name);
                wire.has_two_ids |= name == "id";
            }
        }
        Ok(wire)
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum EnvelopeMember {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests;
