//! Limits texts that Shoal keeps, repeats or looks up.
//!
//! A length is that of the JSON text without quotes. Other texts are limited only by the message's length.

use crate::object::{key_is, spans};
use crate::{
    CLIENT_CAPABILITIES, CLIENT_INFO, InvalidMessage, LOG_LEVEL, Message, Method, PROGRESS_TOKEN,
    PROTOCOL_VERSION, RawJson, RequestId, RpcError,
};

/// A text's length limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// The text's name in refusals.
    pub what: &'static str,
    /// Maximum length, in bytes.
    pub bytes: usize,
}

struct LimitedMember {
    name: &'static str,
    longest: Longest,
}

/// Limits request ids.
pub const LONGEST_ID: Longest = longest("id", 4 << 10);
/// Limits method names.
pub const LONGEST_METHOD: Longest = longest("method", 128);
/// Limits resource URIs, also those to listen to.
pub const LONGEST_URI: Longest = longest("params.uri", 8 << 10);
/// Maximum bytes of a cancellation's reason. Longer reasons are shortened.
pub const LONGEST_REASON: usize = 1024;

/// Shorter texts need no check.
const LEAST: usize = 256;

const PARAMS: &[LimitedMember] = &[
    member("name", "params.name", 512),
    member("uri", "params.uri", LONGEST_URI.bytes),
    member("cursor", "params.cursor", 4 << 10),
    member("level", "params.level", LEAST),
    member("requestId", "params.requestId", LONGEST_ID.bytes),
    member(PROGRESS_TOKEN, "params.progressToken", LONGEST_ID.bytes),
    member("protocolVersion", "params.protocolVersion", LEAST),
    member("clientInfo", "params.clientInfo", 64 << 10),
    member("capabilities", "params.capabilities", 64 << 10),
    member("notifications", "params.notifications", 64 << 10),
    member("taskId", "params.taskId", LEAST),
];

const REF: &[LimitedMember] = &[
    member("name", "params.ref.name", 512),
    member("uri", "params.ref.uri", LONGEST_URI.bytes),
];

const META: &[LimitedMember] = &[
    member(
        PROGRESS_TOKEN,
        "params._meta.progressToken",
        LONGEST_ID.bytes,
    ),
    member(PROTOCOL_VERSION, "params._meta protocolVersion", LEAST),
    member(CLIENT_INFO, "params._meta clientInfo", 64 << 10),
    member(
        CLIENT_CAPABILITIES,
        "params._meta clientCapabilities",
        64 << 10,
    ),
    member(LOG_LEVEL, "params._meta logLevel", LEAST),
    member("traceparent", "params._meta.traceparent", LEAST),
    member("tracestate", "params._meta.tracestate", 4 << 10),
];

const fn longest(what: &'static str, bytes: usize) -> Longest {
    Longest { what, bytes }
}

const fn member(name: &'static str, what: &'static str, bytes: usize) -> LimitedMember {
    LimitedMember {
        name,
        longest: longest(what, bytes),
    }
}

impl Longest {
    /// Returns all limits.
    pub fn all() -> impl Iterator<Item = Self> {
        let members = PARAMS.iter().chain(REF).chain(META);
        [LONGEST_ID, LONGEST_METHOD]
            .into_iter()
            .chain(members.map(|member| member.longest))
    }

    /// Returns the error for a longer text.
    pub fn exceeded(self) -> RpcError {
        let Self { what, bytes } = self;
        let message = format!("{what} is longer than {bytes} bytes; send a shorter one");
        if what.starts_with("params") {
            RpcError::invalid_params(message)
        } else {
            RpcError::invalid_request(message)
        }
    }
}

impl Message {
    /// Refuses a message with overlong texts.
    ///
    /// # Errors
    /// -32602 for a parameter, -32600 for another text. The error has the message's id, unless that is too long.
    pub(crate) fn check_lengths(&self) -> Result<(), InvalidMessage> {
        match self {
            Self::Request(request) => {
                check_id(&request.id)?;
                let (method, params) = (&request.method, request.params.as_ref());
                check_said(method, params, Some(&request.id))
            }
            Self::Notification(said) => check_said(&said.method, said.params.as_ref(), None),
            Self::Response(response) => check_id(&response.id),
        }
    }
}

fn check_id(id: &RequestId) -> Result<(), InvalidMessage> {
    match id.as_bytes().len() > LONGEST_ID.bytes + QUOTES {
        true => Err(invalid(None, LONGEST_ID)),
        false => Ok(()),
    }
}

fn check_said(
    method: &Method,
    params: Option<&RawJson>,
    id: Option<&RequestId>,
) -> Result<(), InvalidMessage> {
    if matches!(method, Method::Other(name) if name.len() > LONGEST_METHOD.bytes) {
        return Err(invalid(id, LONGEST_METHOD));
    }
    let Some(params) = params.filter(|params| params.len() > LEAST) else {
        return Ok(());
    };
    match exceeded(params) {
        Some(longest) => Err(invalid(id, longest)),
        None => Ok(()),
    }
}

fn exceeded(params: &RawJson) -> Option<Longest> {
    let text = params.as_bytes();
    long_members(text).find_map(|(key, value)| {
        if key_is(key, "_meta") {
            return exceeded_of(value, META);
        }
        if key_is(key, "ref") {
            return exceeded_of(value, REF);
        }
        exceeds(key, value, PARAMS)
    })
}

fn exceeded_of(object: &[u8], members: &[LimitedMember]) -> Option<Longest> {
    long_members(object).find_map(|(key, value)| exceeds(key, value, members))
}

fn exceeds(key: &[u8], value: &[u8], members: &[LimitedMember]) -> Option<Longest> {
    let member = members.iter().find(|member| key_is(key, member.name))?;
    let quotes = if value.first() == Some(&b'"') {
        QUOTES
    } else {
        0
    };
    (value.len() > member.longest.bytes + quotes).then_some(member.longest)
}

fn long_members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    spans(object)
        .map(|(key, value)| (&object[key], &object[value]))
        .filter(|(_, value)| value.len() > LEAST)
}

const QUOTES: usize = 2;

fn invalid(id: Option<&RequestId>, longest: Longest) -> InvalidMessage {
    InvalidMessage {
        id: id.cloned(),
        error: longest.exceeded(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST, LONGEST_ID, LONGEST_METHOD, Longest};
    use crate::{Body, Message};

    const PAGE: &str = include_str!("../../../docs/guarantees.md");

    fn parse(text: String) -> Result<Body, Option<String>> {
        Body::from_client(&text.into(), 64).map_err(|invalid| invalid.id.map(|id| id.to_string()))
    }

    fn request(id: usize, method: usize, params: &str) -> String {
        let (id, method) = ("i".repeat(id), "m".repeat(method));
        format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#)
    }

    #[test]
    fn every_text_may_have_its_length_and_no_more() {
        let (id, method) = (LONGEST_ID.bytes, LONGEST_METHOD.bytes);
        assert!(parse(request(id, method, "{}")).is_ok());
        assert_eq!(parse(request(id + 1, method, "{}")).unwrap_err(), None);
        let named = parse(request(1, method + 1, "{}"));
        assert_eq!(named.unwrap_err().as_deref(), Some(r#""i""#));
        let places = super::PARAMS.iter().map(|member| ("", member));
        let places = places.chain(super::REF.iter().map(|member| ("ref", member)));
        for (within, member) in places.chain(super::META.iter().map(|member| ("_meta", member))) {
            for (more, fits) in [(0, true), (1, false)] {
                let value = "x".repeat(member.longest.bytes + more);
                let object = format!(r#"{{"other":1,"{}":"{value}"}}"#, member.name);
                let params = match within {
                    "" => object,
                    within => format!(r#"{{"{within}":{object}}}"#),
                };
                let parsed = parse(request(1, 1, &params));
                assert_eq!(parsed.is_ok(), fits, "{} {more}", member.longest.what);
            }
        }
    }

    #[test]
    fn what_only_passes_through_may_be_long() {
        let long = "x".repeat(100_000);
        let params = format!(r#"{{"name":"a","arguments":{{"name":"{long}"}},"more":"{long}"}}"#);
        assert!(parse(request(1, 1, &params)).is_ok());
        let escaped = format!(r#"{{"\u006eame":"{long}"}}"#);
        assert!(
            parse(request(1, 1, &escaped)).is_err(),
            "however it is spelt"
        );
    }

    #[test]
    fn in_a_batch_the_others_go_on() {
        let batch = format!("[{},{}]", request(1, 200, "{}"), request(2, 1, "{}"));
        let Ok(Body::Batch(members)) = parse(batch) else {
            panic!("it is a batch");
        };
        assert!(members[0].is_err());
        assert!(matches!(members[1], Ok(Message::Request(_))));
    }

    #[test]
    fn the_page_has_every_length() {
        let (_, rest) = PAGE.split_once("## The longest texts").unwrap();
        let (section, _) = rest.split_once("\n## ").unwrap();
        let rows: Vec<&str> = section.lines().filter(|it| it.contains("| `")).collect();
        for Longest { what, bytes } in Longest::all() {
            let unit = match bytes {
                small if small < 1024 => format!("{small}"),
                large => format!("{} KiB", large >> 10),
            };
            let (row, text) = (format!("| {unit} | `"), format!("`{what}`"));
            assert!(
                rows.iter()
                    .any(|it| it.starts_with(&row) && it.contains(&text)),
                "docs/guarantees.md lacks {text} in the row of {unit}"
            );
            assert!(bytes >= LEAST || what == "method");
        }
        let named = rows.iter().flat_map(|it| it.split('`').skip(1).step_by(2));
        let mut whats: Vec<_> = Longest::all().map(|longest| longest.what).collect();
        whats.dedup();
        assert_eq!(named.count(), whats.len(), "texts that the code has not");
    }
}
