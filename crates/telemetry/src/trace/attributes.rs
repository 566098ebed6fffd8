//! The keys of span attributes.
//!
//! Names follow the OpenTelemetry conventions for MCP, GenAI, RPC and HTTP, or begin with `shoal.`. Spans contain no
//! arguments or results of tools.

use std::borrow::Cow;
use std::io::Write as _;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::time::Duration;

use opentelemetry::Value;
use serde::Serialize;
use shoal_protocol::is_unseen;

/// An attribute's name and the type of its value.
#[derive(Debug)]
pub struct Key<T: ?Sized> {
    name: &'static str,
    member: &'static str,
    value: PhantomData<fn(&T)>,
}

macro_rules! key {
    ($name:literal) => {
        $crate::trace::Key::new($name, concat!(",\"", $name, "\":"))
    };
}

pub(crate) use key;

impl<T: ?Sized> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Key<T> {}

impl<T: ?Sized> Key<T> {
    pub(crate) const fn new(name: &'static str, member: &'static str) -> Self {
        Self {
            name,
            member,
            value: PhantomData,
        }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    pub(crate) const fn member(self) -> &'static str {
        self.member
    }
}

/// Maximum bytes of a text. Clients write some of the texts, and all wait in memory for export.
pub const LONGEST_TEXT: usize = 1_024;

pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

pub(super) fn cut_name(mut name: Cow<'static, str>) -> Cow<'static, str> {
    if name.len() > LONGEST_TEXT {
        name = Cow::Owned(cut(&name).to_owned());
    }
    name
}

/// A type of attribute values. Texts are truncated at [`LONGEST_TEXT`].
pub trait Recorded {
    /// The argument type.
    type Given<'a>: Copy;

    #[doc(hidden)]
    fn to_value(given: Self::Given<'_>) -> Value;

    /// Writes a value as JSON for the audit trail.
    #[doc(hidden)]
    fn write(given: Self::Given<'_>, json: &mut Vec<u8>);
}

impl Recorded for str {
    type Given<'a> = &'a str;

    fn to_value(given: &str) -> Value {
        cut(given).to_owned().into()
    }

    fn write(given: &str, json: &mut Vec<u8>) {
        write_text(cut(given), json);
    }
}

impl Recorded for i64 {
    type Given<'a> = i64;

    fn to_value(given: i64) -> Value {
        given.into()
    }

    fn write(given: i64, json: &mut Vec<u8>) {
        write_json(&given, json);
    }
}

impl Recorded for f64 {
    type Given<'a> = f64;

    fn to_value(given: f64) -> Value {
        given.into()
    }

    fn write(given: f64, json: &mut Vec<u8>) {
        write_json(&given, json);
    }
}

impl Recorded for Duration {
    type Given<'a> = Self;

    fn to_value(given: Self) -> Value {
        given.as_secs_f64().into()
    }

    /// Writes all nine decimals, which is faster than finding the shortest form of a float.
    fn write(given: Self, json: &mut Vec<u8>) {
        write_json(&given.as_secs(), json);
        let mut fraction = *b".000000000";
        let mut left = given.subsec_nanos();
        for digit in fraction[1..].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        json.extend_from_slice(&fraction);
    }
}

impl Recorded for bool {
    type Given<'a> = bool;

    fn to_value(given: bool) -> Value {
        given.into()
    }

    fn write(given: bool, json: &mut Vec<u8>) {
        write_json(&given, json);
    }
}

impl Recorded for IpAddr {
    type Given<'a> = Self;

    fn to_value(given: Self) -> Value {
        given.to_string().into()
    }

    fn write(given: Self, json: &mut Vec<u8>) {
        match given {
            // Formats the parts directly, because every request has an address and the usual formatting is slow.
            Self::V4(address) => {
                for (before, octet) in [b'"', b'.', b'.', b'.'].iter().zip(address.octets()) {
                    json.push(*before);
                    write_json(&octet, json);
                }
                json.push(b'"');
            }
            // Writing to memory cannot fail.
            Self::V6(address) => drop(write!(json, "\"{address}\"")),
        }
    }
}

/// Escapes every invisible character, because some end a line or turn its direction. Most texts need no escapes and are
/// copied.
pub(crate) fn write_text(text: &str, json: &mut Vec<u8>) {
    json.push(b'"');
    if is_plain(text.as_bytes()) {
        json.extend_from_slice(text.as_bytes());
    } else {
        text.chars().for_each(|letter| write_letter(letter, json));
    }
    json.push(b'"');
}

fn write_letter(letter: char, json: &mut Vec<u8>) {
    match letter {
        '"' | '\\' => json.extend([b'\\', letter as u8]),
        '\n' => json.extend(b"\\n"),
        '\r' => json.extend(b"\\r"),
        '\t' => json.extend(b"\\t"),
        unseen if is_unseen(unseen) => {
            for unit in unseen.encode_utf16(&mut [0; 2]) {
                let _ = write!(json, "\\u{unit:04x}");
            }
        }
        seen => json.extend(seen.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Loops without an early exit can be vectorised. The last chunk overlaps the one before, which is faster than single
/// bytes.
fn is_plain(text: &[u8]) -> bool {
    match (text.len(), text.last_chunk()) {
        (..4, _) => !text.iter().any(|&byte| has_escape(byte)),
        (..8, _) => !ends_have_escape::<4>(text),
        (..16, _) => !ends_have_escape::<8>(text),
        (_, None) => false,
        (_, Some(last)) => {
            let mut found = [0; 16];
            note_escapes(last, &mut found);
            for chunk in text.as_chunks().0 {
                note_escapes(chunk, &mut found);
            }
            found == [0; 16]
        }
    }
}

fn ends_have_escape<const N: usize>(text: &[u8]) -> bool {
    let any = |end: &[u8; N]| (end.iter()).fold(false, |any, &byte| any | has_escape(byte));
    text.first_chunk().is_some_and(any) | text.last_chunk().is_some_and(any)
}

/// Inlined, because otherwise it compiles to slower instructions.
#[inline(always)]
fn note_escapes(chunk: &[u8; 16], found: &mut [u8; 16]) {
    for (found, &byte) in found.iter_mut().zip(chunk) {
        *found |= if has_escape(byte) { 0xff } else { 0 };
    }
}

fn has_escape(byte: u8) -> bool {
    !(0x20..0x7f).contains(&byte) | (byte == b'"') | (byte == b'\\')
}

fn write_json<T: Serialize + ?Sized>(value: &T, json: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(json, value);
}

macro_rules! keys {
    ($(#[doc = $doc:literal] $constant:ident: $kind:ty = $name:literal;)+) => {
        $(#[doc = $doc] pub const $constant: Key<$kind> = key!($name);)+

        /// Every key, in the order of the reference page.
        pub const ALL: &[(&str, &str)] = &[$(($name, $doc)),+];
    };
}

keys! {
    /// The request or notification.
    MCP_METHOD_NAME: str = "mcp.method.name";
    /// Id of the session.
    MCP_SESSION_ID: str = "mcp.session.id";
    /// The protocol revision.
    MCP_PROTOCOL_VERSION: str = "mcp.protocol.version";
    /// Resource of a read or subscription.
    MCP_RESOURCE_URI: str = "mcp.resource.uri";
    /// The called tool.
    GEN_AI_TOOL_NAME: str = "gen_ai.tool.name";
    /// The requested prompt.
    GEN_AI_PROMPT_NAME: str = "gen_ai.prompt.name";
    /// `execute_tool` for tool calls, else unset.
    GEN_AI_OPERATION_NAME: str = "gen_ai.operation.name";
    /// Request's id as text; unset for notifications.
    JSONRPC_REQUEST_ID: str = "jsonrpc.request.id";
    /// The answer's JSON-RPC error code.
    RPC_RESPONSE_STATUS_CODE: str = "rpc.response.status_code";
    /// Cause of a failure: JSON-RPC code, `tool_error`, or a short name.
    ERROR_TYPE: str = "error.type";
    /// `tcp`.
    NETWORK_TRANSPORT: str = "network.transport";
    /// `http`; unset for stdio.
    NETWORK_PROTOCOL_NAME: str = "network.protocol.name";
    /// `1.1` or `2`.
    NETWORK_PROTOCOL_VERSION: str = "network.protocol.version";
    /// Client's address.
    CLIENT_ADDRESS: IpAddr = "client.address";
    /// Client's port.
    CLIENT_PORT: i64 = "client.port";
    /// `GET` or `DELETE`.
    HTTP_REQUEST_METHOD: str = "http.request.method";
    /// Status of the answer.
    HTTP_RESPONSE_STATUS_CODE: i64 = "http.response.status_code";
    /// Pattern of the path.
    HTTP_ROUTE: str = "http.route";
    /// `redis`.
    DB_SYSTEM_NAME: str = "db.system.name";
    /// Store operation.
    DB_OPERATION_NAME: str = "db.operation.name";
    /// Other node's name.
    PEER_NODE: str = "shoal.peer.node";
    /// The span's role: `edge`, `session` or `worker`.
    ROLE: str = "shoal.role";
    /// Call's id in the journal.
    CALL_ID: str = "shoal.call.id";
    /// The call's pool.
    POOL: str = "shoal.pool";
    /// Call's worker.
    WORKER: str = "shoal.worker";
    /// Session's epoch, which grows with each change of owner.
    EPOCH: i64 = "shoal.epoch";
    /// Attempt, from 1.
    ATTEMPT: i64 = "shoal.attempt";
    /// Outcome of a step that did not fail.
    OUTCOME: str = "shoal.outcome";
    /// Reason for the step.
    REASON: str = "shoal.reason";
    /// Id of the event stream.
    STREAM_ID: str = "shoal.stream.id";
    /// Events read or written.
    EVENTS: i64 = "shoal.events";
    /// Running calls that a takeover or handover found.
    CALLS: i64 = "shoal.calls";
    /// Whether Shoal delivers the request again.
    IS_REPEATED: bool = "shoal.delivery.repeated";
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use shoal_protocol::is_unseen;

    use super::{Recorded, write_text};

    #[test]
    fn texts_are_written_as_json_whatever_stands_where() {
        for length in 0..70 {
            for at in 0..length {
                for byte in 0..=0x7f {
                    let mut text = vec![b'x'; length];
                    text[at] = byte;
                    let plain = String::from_utf8(text).unwrap();
                    for text in [format!("{plain}ä"), plain] {
                        let mut json = Vec::new();
                        write_text(&text, &mut json);
                        let read: String = serde_json::from_slice(&json).unwrap();
                        assert_eq!(read, text);
                        assert!(!str::from_utf8(&json).unwrap().contains(is_unseen));
                    }
                }
            }
        }
    }

    #[test]
    fn what_shows_nothing_is_an_escape_and_reads_the_same() {
        let text =
            "a\u{85}\u{a0}ä漢\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{1d173}😀\u{feff}\u{7f}";
        let mut json = Vec::new();
        write_text(text, &mut json);
        let written = str::from_utf8(&json).unwrap();
        assert_eq!(
            written,
            r#""a\u0085\u00a0ä漢\u2028\u2029\u202e\u2066\u200b\ud834\udd73😀\ufeff\u007f""#
        );
        assert_eq!(serde_json::from_str::<String>(written).unwrap(), text);
    }

    #[test]
    fn addresses_are_written_as_they_are_shown() {
        for text in [
            "0.0.0.0",
            "192.0.2.100",
            "255.255.255.255",
            "::",
            "2001:db8::1",
        ] {
            let address: IpAddr = text.parse().unwrap();
            let mut json = Vec::new();
            IpAddr::write(address, &mut json);
            assert_eq!(str::from_utf8(&json), Ok(&*format!("\"{text}\"")));
        }
    }
}
