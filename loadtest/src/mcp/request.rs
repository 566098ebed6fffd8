//! Builds the requests of a client.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::Full;

use super::Mode;
use crate::connection::Outgoing;
use crate::failure::Failure;
use crate::target::Target;

pub(crate) const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
pub(crate) const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Both eras require that clients accept both types.
const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) struct Requests {
    pub(super) target: Target,
    pub(super) mode: Mode,
    /// If a legacy server sends no session ID, the client omits the header too.
    pub(super) session: Option<HeaderValue>,
    /// A JSON object.
    pub(super) capabilities: &'static str,
}

impl Requests {
    pub(super) fn initialize(&self, id: u64) -> Outgoing {
        let (able, version) = (self.capabilities, env!("CARGO_PKG_VERSION"));
        self.post(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{able},"clientInfo":{{"name":"loadtest","version":"{version}"}}}}}}"#
        ))
    }

    /// In the modern era, `name` goes to the header for routing, if it is not empty, and each `_meta` describes the
    /// client. `params` and `meta` are JSON objects without their braces.
    pub(super) fn request(
        &self,
        id: u64,
        method: &'static str,
        name: &str,
        params: &str,
        meta: &str,
    ) -> Result<Outgoing, Failure> {
        let comma = |text: &str| if text.is_empty() { "" } else { "," };
        let meta = match self.mode {
            Mode::Legacy if meta.is_empty() => String::new(),
            Mode::Legacy => format!(r#","_meta":{{{meta}}}"#),
            Mode::Modern => format!(
                r#"{}"_meta":{{{meta}{}"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientInfo":{{"name":"loadtest","version":"{}"}},"io.modelcontextprotocol/clientCapabilities":{}}}"#,
                comma(params),
                comma(meta),
                env!("CARGO_PKG_VERSION"),
                self.capabilities
            ),
        };
        let mut request = self.post(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{meta}}}}}"#
        ));
        if self.mode == Mode::Modern {
            let headers = request.headers_mut();
            headers.insert(METHOD, HeaderValue::from_static(method));
            if !name.is_empty() {
                let wrong = |_| Failure::Wrong(format!("no header can name {name:?}"));
                headers.insert(NAME, HeaderValue::from_str(name).map_err(wrong)?);
            }
        }
        Ok(request)
    }

    pub(super) fn post(&self, message: String) -> Outgoing {
        let mut request = Request::new(Full::from(message));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.path.clone();
        *request.headers_mut() = self.headers(ACCEPT_BOTH);
        request.headers_mut().insert(header::CONTENT_TYPE, JSON);
        request
    }

    /// Without `last_event_id`, requests the standalone stream.
    pub(super) fn listen(&self, last_event_id: Option<&HeaderValue>) -> Outgoing {
        let mut request = self.without_body(Method::GET);
        if let Some(id) = last_event_id {
            request.headers_mut().insert(LAST_EVENT_ID, id.clone());
        }
        request
    }

    pub(super) fn end(&self) -> Outgoing {
        self.without_body(Method::DELETE)
    }

    fn without_body(&self, method: Method) -> Outgoing {
        let mut request = Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = self.target.path.clone();
        *request.headers_mut() = self.headers(STREAM);
        request
    }

    fn headers(&self, accept: HeaderValue) -> HeaderMap {
        let version = match self.mode {
            Mode::Legacy => LEGACY,
            Mode::Modern => MODERN,
        };
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(header::HOST, self.target.host.clone());
        headers.insert(header::ACCEPT, accept);
        headers.insert(VERSION, HeaderValue::from_static(version));
        let authorization = self.target.authorization.clone();
        headers.extend(authorization.map(|it| (header::AUTHORIZATION, it)));
        headers.extend(self.session.clone().map(|it| (SESSION_ID, it)));
        headers
    }
}
