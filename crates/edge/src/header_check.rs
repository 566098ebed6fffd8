//! Headers that two readers could understand differently: refused before anything is read from them.
//!
//! A proxy, a filter and this server must see the same request. What clients set at two places may be repeated with the same
//! value, which every reader understands equally. What concerns where a message ends is checked nearer to the socket, by
//! whoever serves the connection.

use http::request::Parts;
use http::{HeaderMap, HeaderName, Version, header};
use shoal_protocol::MCP_PARAM_PREFIX;

use crate::names;
use crate::refusal::Refusal;

/// Checks that the host is named once, and every header that says one thing is there once.
///
/// # Errors
/// The first that is not.
pub(crate) fn expect_unambiguous(head: &Parts) -> Result<(), Refusal> {
    let headers = &head.headers;
    // Both are known without a look at the headers: that is what every sound request costs.
    if headers.len() != headers.keys_len() {
        expect_single(headers)?;
    }
    let Some(host) = headers.get(header::HOST) else {
        // A server must refuse it (RFC 9112, 3.2); over HTTP/2 the authority takes its place.
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

/// Why a request is refused whose headers two readers could understand differently; `None` for a sound one.
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

/// Whether clients and their libraries are known to set the header at two places. It decides neither where a message ends nor
/// who is calling.
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

/// Whether the header repeats what the body says.
fn is_mirrored(name: &HeaderName) -> bool {
    [&names::PROTOCOL_VERSION, &names::METHOD, &names::NAME].contains(&name)
        || name.as_str().starts_with(MCP_PARAM_PREFIX)
}
