//! MCP's HTTP headers, some of which mirror values of the body (2026-07-28, Request Metadata).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{RpcError, code, shown};

/// The request's revision.
pub const MCP_PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The legacy session's id.
pub const MCP_SESSION_ID: &str = "mcp-session-id";
/// Mirrors `method`.
pub const MCP_METHOD: &str = "mcp-method";
/// Mirrors `params.name` or `params.uri`.
pub const MCP_NAME: &str = "mcp-name";
/// Prefix of headers that mirror tool arguments.
pub const MCP_PARAM_PREFIX: &str = "mcp-param-";
/// The event after which a legacy client resumes.
pub const LAST_EVENT_ID: &str = "last-event-id";

pub(crate) const EXCERPT: usize = 128;

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// A header that differs from the body, answered with `400` and -32020.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header mismatch: {0}")]
pub struct HeaderMismatch(pub String);

impl From<HeaderMismatch> for RpcError {
    fn from(mismatch: HeaderMismatch) -> Self {
        Self::new(code::HEADER_MISMATCH, mismatch.to_string())
    }
}

/// A decoded header value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedValue(pub String);

/// Decodes a mirroring header: plain visible ASCII, or the Base64 sentinel.
///
/// # Errors
/// Other characters, or Base64 that is not UTF-8.
pub fn decode_value(name: &str, value: &[u8]) -> Result<EncodedValue, HeaderMismatch> {
    let invalid = |what: &str| HeaderMismatch(format!("{name} {what}"));
    let text = std::str::from_utf8(value)
        .ok()
        .filter(|text| {
            text.bytes()
                .all(|b| b == b'\t' || (0x20..=0x7e).contains(&b))
        })
        .ok_or_else(|| invalid("contains characters that a header must carry Base64-encoded"))?;
    let encoded = text
        .strip_prefix(SENTINEL_START)
        .and_then(|rest| rest.strip_suffix(SENTINEL_END));
    let Some(encoded) = encoded else {
        return Ok(EncodedValue(text.to_owned()));
    };
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|_| invalid("is not valid Base64"))?;
    let decoded = String::from_utf8(bytes).map_err(|_| invalid("does not decode to UTF-8"))?;
    Ok(EncodedValue(decoded))
}

/// Encodes a value for a mirroring header.
pub fn encode_value(value: &str) -> String {
    let plain = value.bytes().all(|b| (0x20..=0x7e).contains(&b))
        && value.trim() == value
        && !(value.starts_with(SENTINEL_START) && value.ends_with(SENTINEL_END));
    if plain {
        value.to_owned()
    } else {
        format!("{SENTINEL_START}{}{SENTINEL_END}", STANDARD.encode(value))
    }
}

/// Checks that a header, perhaps encoded (`Mcp-Name`, `Mcp-Param-*`), equals the body's value.
///
/// # Errors
/// The header is missing, malformed or different.
pub fn expect_equal(name: &str, header: Option<&[u8]>, body: &str) -> Result<(), HeaderMismatch> {
    let EncodedValue(value) = decode_value(name, there(name, header)?)?;
    same(name, &value, body)
}

/// Checks that a header for proxies (`Mcp-Method`, `MCP-Protocol-Version`) equals the body's value.
///
/// # Errors
/// The header is missing or different.
pub fn expect_plain(name: &str, header: Option<&[u8]>, body: &str) -> Result<(), HeaderMismatch> {
    let header = there(name, header)?;
    let text = std::str::from_utf8(header)
        .map_err(|_| HeaderMismatch(format!("{name} holds more than ASCII")))?;
    same(name, text, body)
}

fn there<'h>(name: &str, header: Option<&'h [u8]>) -> Result<&'h [u8], HeaderMismatch> {
    header.ok_or_else(|| HeaderMismatch(format!("the header {name} is missing")))
}

fn same(name: &str, header: &str, body: &str) -> Result<(), HeaderMismatch> {
    if header == body {
        return Ok(());
    }
    let (header, body) = (shown(header, EXCERPT), shown(body, EXCERPT));
    Err(HeaderMismatch(format!(
        "{name} says {header:?}, the body says {body:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::{EncodedValue, decode_value, encode_value, expect_equal, expect_plain};

    #[test]
    fn values_survive_encoding() {
        for value in [
            "us-west1",
            "Hello, 世界",
            " padded ",
            "line1\nline2",
            "=?base64?literal?=",
            "",
        ] {
            let header = encode_value(value);
            assert!(header.is_ascii());
            assert_eq!(
                decode_value("x", header.as_bytes()),
                Ok(EncodedValue(value.into()))
            );
        }
    }

    #[test]
    fn malformed_values_are_refused() {
        for header in [
            &b"caf\xc3\xa9"[..],
            b"=?base64?%%%?=",
            b"=?base64?/w==?=",
            b"\x01",
        ] {
            assert!(decode_value("x", header).is_err());
        }
    }

    #[test]
    fn names_both_sides_of_a_mismatch() {
        let error = expect_equal("Mcp-Name", Some(b"foo"), "bar").unwrap_err();
        assert!(error.to_string().contains("\"foo\"") && error.to_string().contains("\"bar\""));
        assert!(expect_equal("Mcp-Name", None, "bar").is_err());
    }

    #[test]
    fn only_some_headers_may_be_encoded() {
        let encoded = encode_value("=?base64?literal?=");
        for name in ["Mcp-Name", "Mcp-Param-Region"] {
            assert!(expect_equal(name, Some(encoded.as_bytes()), "=?base64?literal?=").is_ok());
        }
        let method = b"=?base64?dG9vbHMvY2FsbA==?=";
        let error = expect_plain("Mcp-Method", Some(method), "tools/call").unwrap_err();
        assert!(error.to_string().contains("=?base64?"), "{error}");
        assert!(expect_plain("Mcp-Method", Some(b"tools/call"), "tools/call").is_ok());
        assert!(expect_plain("Mcp-Method", None, "tools/call").is_err());
        assert!(expect_plain("Mcp-Method", Some(b"\xff"), "\u{fffd}").is_err());
    }

    #[test]
    fn a_refusal_quotes_only_the_beginning() {
        let (long, other) = ("é".repeat(5000), "x".repeat(5000));
        let header = encode_value(&long);
        let refused = expect_equal("x", Some(header.as_bytes()), &other).unwrap_err();
        assert!(
            refused.0.len() < 600,
            "{} bytes: {refused}",
            refused.0.len()
        );
        assert!(refused.0.starts_with("x says \"éé"), "{refused}");
        let refused = expect_plain("x", Some(other.as_bytes()), &long).unwrap_err();
        assert!(
            refused.0.len() < 600,
            "{} bytes: {refused}",
            refused.0.len()
        );
    }
}
