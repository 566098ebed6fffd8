use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use shoal_protocol::{
    MCP_PROTOCOL_VERSION, MCP_SESSION_ID, Method, RawJson, RawObject, Request, RequestId,
};

/// The server's session, without id and version until `initialize` is answered.
#[derive(Default)]
pub(super) struct ServerSession(Mutex<SessionReplay>);

#[derive(Default)]
struct SessionReplay {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    opening: Option<(RequestId, Bytes)>,
    initialized: bool,
    /// The newest request of each kind that changes the session: `logging/setLevel` and subscriptions.
    changes: Vec<(String, Bytes)>,
}

impl ServerSession {
    pub(super) fn is_open(&self) -> bool {
        let known = self.0.lock();
        known.id.is_some() || known.version.is_some()
    }

    /// Returns the session's id. `None` before the answer to `initialize`, and for a server without sessions.
    pub(super) fn key(&self) -> Option<HeaderValue> {
        self.0.lock().id.clone()
    }

    pub(super) fn headers(&self) -> HeaderMap {
        let known = self.0.lock();
        let mut headers = HeaderMap::new();
        if let Some(id) = &known.id {
            headers.insert(MCP_SESSION_ID, id.clone());
        }
        if let Some(version) = &known.version {
            headers.insert(MCP_PROTOCOL_VERSION, version.clone());
        }
        headers
    }

    pub(super) fn note_request(&self, request: &Request, text: &Bytes) {
        let mut known = self.0.lock();
        let uri = || {
            let params = request.params.as_ref().and_then(RawObject::of)?;
            params.get("uri")?.string()
        };
        let key = match &request.method {
            Method::Initialize => {
                *known = SessionReplay {
                    opening: Some((request.id.clone(), text.clone())),
                    ..SessionReplay::default()
                };
                return;
            }
            Method::SetLevel => "level".to_owned(),
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => match uri() {
                Some(uri) => format!("uri {uri}"),
                None => return,
            },
            _ => return,
        };
        known.changes.retain(|(changed, _)| *changed != key);
        if request.method != Method::ResourcesUnsubscribe {
            known.changes.push((key, text.clone()));
        }
    }

    pub(super) fn note_headers(&self, headers: &HeaderMap) {
        if let Some(id) = headers.get(MCP_SESSION_ID) {
            self.0.lock().id = Some(id.clone());
        }
    }

    pub(super) fn note_result(&self, id: &RequestId, result: &RawJson) {
        let mut known = self.0.lock();
        let opens =
            known.version.is_none() && matches!(&known.opening, Some((own, _)) if own == id);
        if opens {
            let version = RawObject::of(result)
                .and_then(|result| result.get("protocolVersion"))
                .and_then(|version| version.string());
            known.version = version.and_then(|version| HeaderValue::from_str(&version).ok());
        }
    }

    /// Returns whether it is the session's first.
    pub(super) fn note_initialized(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().initialized, true)
    }

    /// Returns the messages that reopen the session, and whether the client is initialized.
    pub(super) fn script(&self) -> Option<(Bytes, bool, Vec<Bytes>)> {
        let known = self.0.lock();
        let (_, opening) = known.opening.clone()?;
        let changes = known.changes.iter().map(|(_, text)| text.clone());
        Some((opening, known.initialized, changes.collect()))
    }

    pub(super) fn replace(&self, id: Option<HeaderValue>) {
        self.0.lock().id = id;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;
    use shoal_protocol::{Message, RawJson, Request, RequestId};

    use super::ServerSession;

    fn note(session: &ServerSession, text: &'static str) {
        let text = Bytes::from_static(text.as_bytes());
        let Ok(Message::Request(request)) = Message::parse(&text) else {
            panic!("{text:?}");
        };
        let request: Request = request;
        session.note_request(&request, &text);
    }

    #[test]
    fn a_session_is_named_and_can_be_opened_again() {
        let session = ServerSession::default();
        note(
            &session,
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#,
        );
        assert!(!session.is_open());
        let mut headers = HeaderMap::new();
        headers.insert("mcp-session-id", "abc".parse().unwrap());
        session.note_headers(&headers);
        let result = RawJson::from_static(r#"{"protocolVersion":"2025-11-25"}"#);
        session.note_result(&RequestId::from_number(0), &result);
        let sent = session.headers();
        assert_eq!(sent["mcp-session-id"], "abc");
        assert_eq!(sent["mcp-protocol-version"], "2025-11-25");
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:1"}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:2"}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"a:1"}}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#,
        ] {
            note(&session, text);
        }
        assert!(session.note_initialized() && !session.note_initialized());
        let (opening, initialized, changes) = session.script().unwrap();
        assert!(opening.starts_with(br#"{"jsonrpc":"2.0","id":0"#) && initialized);
        let texts: Vec<String> = changes
            .iter()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect();
        assert_eq!(texts.len(), 2);
        assert!(
            texts[0].contains("error") && texts[1].contains("a:2"),
            "{texts:?}"
        );
    }
}
