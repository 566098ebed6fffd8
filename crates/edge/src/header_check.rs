//! Refuses ambiguous headers, so that a proxy, a filter and this server read the same request. The
//! HTTP server checks message framing.

use http::request::Parts;
use http::{HeaderMap, HeaderName, Version, header};
use shoal_protocol::MCP_PARAM_PREFIX;

use crate::names;
use crate::refusal::Refusal;

/// Requires one host, and at most one of every single-valued header. Fails with the first bad
/// header.
pub(crate) fn expect_unambiguous(head: &Parts) -> Result<(), Refusal> {
    let headers = &head.headers;
    // The lengths differ only if a header is repeated, and comparing them needs no scan.
    if headers.len() != headers.keys_len() {
        expect_single(headers)?;
    }
    let Some(host) = headers.get(header::HOST) else {
        // RFC 9112, 3.2. HTTP/2 has the authority instead.
        return match head.version {
            Version::HTTP_11 => Err(Refusal::HostMissing),
            _ => Ok(()),
        };
    };
    match head.uri.authority() {
        Some(authority)
            if !authority
                .as_str()
                .as_bytes()
                .eq_ignore_ascii_case(host.as_bytes()) =>
        {
            Err(Refusal::HostUnlikeAuthority)
        }
        _ => Ok(()),
    }
}

/// Describes why headers are ambiguous, or returns `None`.
pub fn ambiguity(head: &Parts) -> Option<String> {
    let refused = expect_unambiguous(head).err()?;
    Some(refused.to_string())
}

fn expect_single(headers: &HeaderMap) -> Result<(), Refusal> {
    for name in headers.keys().filter(|name| says_one_thing(name)) {
        let mut values = headers.get_all(name).iter();
        let first = values.next();
        let mut repeated = values.peekable();
        if repeated.peek().is_none() {
            continue;
        }
        let same = may_be_repeated(name) && repeated.all(|value| Some(value) == first);
        match is_mirrored(name) {
            _ if same => {}
            true => return Err(Refusal::MirroredTwice(name.clone())),
            false => return Err(Refusal::HeaderTwice(name.clone())),
        }
    }
    Ok(())
}

/// Known clients set these headers twice. Neither framing nor authentication depends on them.
fn may_be_repeated(name: &HeaderName) -> bool {
    [
        &names::PROTOCOL_VERSION,
        &names::SESSION_ID,
        &header::CONTENT_TYPE,
    ]
    .contains(&name)
}

fn says_one_thing(name: &HeaderName) -> bool {
    [
        &header::HOST,
        &header::AUTHORIZATION,
        &names::DPOP,
        &header::ORIGIN,
        &header::CONTENT_TYPE,
        &header::CONTENT_LENGTH,
        &header::TRANSFER_ENCODING,
        &names::SESSION_ID,
        &names::LAST_EVENT_ID,
        &header::SEC_WEBSOCKET_KEY,
        &header::SEC_WEBSOCKET_VERSION,
    ]
    .contains(&name)
        || is_mirrored(name)
}

fn is_mirrored(name: &HeaderName) -> bool {
    [&names::PROTOCOL_VERSION, &names::METHOD, &names::NAME].contains(&name)
        || name.as_str().starts_with(MCP_PARAM_PREFIX)
}
