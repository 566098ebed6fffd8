//! Classifies Shoal's own messages by their beginning.

/// Begins every message with an id that Shoal writes.
const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Result,
    Error,
    Other,
}

/// Reads only up to the member after the id, because results can be long.
pub(crate) fn said(text: &[u8]) -> Said {
    let after = text.strip_prefix(HEAD).and_then(after_id);
    match after {
        Some(rest) if rest.starts_with(br#","result":"#) => Said::Result,
        Some(rest) if rest.starts_with(br#","error":"#) => Said::Error,
        _ => Said::Other,
    }
}

fn after_id(text: &[u8]) -> Option<&[u8]> {
    if text.first() != Some(&b'"') {
        return text.iter().position(|b| *b == b',').map(|at| &text[at..]);
    }
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return text.get(at + 1..),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocol::{RawJson, RequestId, RpcError, error_response, request, response};

    use super::{Said, said};

    #[test]
    fn responses_are_told_by_what_follows_their_id() {
        for id in ["1", "-70", r#""a""#, r#""a\",\"error\":""#, r#""\\""#] {
            let id = RequestId::from_json(&RawJson::parse_text(id.to_owned().into()).unwrap());
            let id = id.unwrap();
            let result = RawJson::from_static(r#"{"error":{}}"#);
            assert_eq!(said(&response(&id, &result)), Said::Result, "{id}");
            let error = RpcError::invalid_request("no");
            assert_eq!(said(&error_response(&id, &error)), Said::Error, "{id}");
            assert_eq!(said(&request(&id, "ping", None)), Said::Other, "{id}");
        }
        for other in [
            "",
            "{",
            r#"{"jsonrpc":"2.0","method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":"a"#,
        ] {
            assert_eq!(said(other.as_bytes()), Said::Other, "{other}");
        }
    }
}
