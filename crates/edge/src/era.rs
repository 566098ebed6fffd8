use http::HeaderMap;
use shoal_protocol::{Body, Era, Message, Method, RawJson, RequestMeta, Revision, shown};

use crate::names;
use crate::refusal::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionHeader<'a> {
    Absent,
    Known(Revision),
    Unknown(&'a str),
}

pub(crate) enum Selected {
    Modern(RequestMeta),
    Legacy,
}

impl<'a> VersionHeader<'a> {
    pub(crate) fn of(headers: &'a HeaderMap) -> Self {
        let Some(value) = headers.get(&names::PROTOCOL_VERSION) else {
            return Self::Absent;
        };
        let text = value.to_str().unwrap_or("(not ASCII)");
        match text.parse() {
            Ok(revision) => Self::Known(revision),
            Err(_) => Self::Unknown(text),
        }
    }

    pub(crate) fn as_str(&self) -> Option<&'a str> {
        match self {
            Self::Absent => None,
            Self::Known(revision) => Some(revision.as_str()),
            Self::Unknown(text) => Some(text),
        }
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(self, Self::Known(revision) if revision.era() == Era::Modern)
    }

    pub(crate) fn expect_known(&self) -> Result<(), Refusal> {
        match self {
            Self::Unknown(text) => Err(Refusal::UnsupportedVersionHeader(shown(text, 64))),
            Self::Absent | Self::Known(_) => Ok(()),
        }
    }
}

/// A session's message is not searched for `_meta`, because legacy calls must be fast.
pub(crate) fn select(
    header: VersionHeader<'_>,
    has_session: bool,
    body: &Body,
) -> Result<Selected, Refusal> {
    if header.is_modern() {
        return Ok(Selected::Modern(RequestMeta::of(params_of(body))));
    }
    if has_session && !matches!(header, VersionHeader::Unknown(_)) {
        return Ok(Selected::Legacy);
    }
    let meta = RequestMeta::of(params_of(body));
    let claims_modern = match &meta.protocol_version {
        None => false,
        // A client of both eras may send `_meta` with `initialize`: only a modern version makes the
        // request modern.
        Some(version) if is_initialize(body) => version
            .parse::<Revision>()
            .is_ok_and(|version| version.era() == Era::Modern),
        Some(_) => true,
    };
    if claims_modern {
        return Ok(Selected::Modern(meta));
    }
    header.expect_known()?;
    Ok(Selected::Legacy)
}

fn params_of(body: &Body) -> Option<&RawJson> {
    match body {
        Body::Single(Message::Request(request)) => request.params.as_ref(),
        Body::Single(Message::Notification(notification)) => notification.params.as_ref(),
        Body::Single(Message::Response(_)) | Body::Batch(_) => None,
    }
}

fn is_initialize(body: &Body) -> bool {
    matches!(body, Body::Single(Message::Request(request)) if request.method == Method::Initialize)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;
    use shoal_protocol::Body;

    use super::{Selected, VersionHeader, select};

    fn era(header: Option<&str>, session: bool, body: &'static str) -> &'static str {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert("mcp-protocol-version", header.parse().unwrap());
        }
        let body = Body::parse(&Bytes::from_static(body.as_bytes()), 64).unwrap();
        match select(VersionHeader::of(&headers), session, &body) {
            Ok(Selected::Modern(_)) => "modern",
            Ok(Selected::Legacy) => "legacy",
            Err(_) => "refused",
        }
    }

    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    const MODERN_LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":
        {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    const MODERN_INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":
        {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    const FALLBACK_INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":
        {"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}"#;

    #[test]
    fn the_opening_decides() {
        for (header, session, body, expected) in [
            (None, false, INITIALIZE, "legacy"),
            (Some("2025-06-18"), false, INITIALIZE, "legacy"),
            (None, false, MODERN_INITIALIZE, "modern"),
            (None, false, FALLBACK_INITIALIZE, "legacy"),
            (Some("2026-07-28"), false, INITIALIZE, "modern"),
            (Some("2027-01-01"), false, INITIALIZE, "refused"),
            (None, true, LIST, "legacy"),
            (Some("2025-11-25"), true, LIST, "legacy"),
            (Some("2026-07-28"), true, LIST, "modern"),
            (Some("2026-07-28"), false, LIST, "modern"),
            (None, false, LIST, "legacy"),
            (None, false, MODERN_LIST, "modern"),
            (Some("2025-11-25"), false, MODERN_LIST, "modern"),
            (Some("2027-01-01"), false, MODERN_LIST, "modern"),
            (Some("2027-01-01"), true, LIST, "refused"),
            (Some("2027-01-01"), false, "[{}]", "refused"),
            (None, false, "[{}]", "legacy"),
        ] {
            assert_eq!(
                era(header, session, body),
                expected,
                "{header:?} {session} {body}"
            );
        }
    }
}
