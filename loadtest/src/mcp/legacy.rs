use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::Full;

use super::{post, post_headers};
use crate::target::Target;

pub(crate) const VERSION: &str = "2025-11-25";

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// If the server sends no session ID, the client omits the header too.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    target: Target,
    id: Option<HeaderValue>,
}

impl Session {
    pub(crate) fn new(target: Target, id: Option<HeaderValue>) -> Self {
        Self { target, id }
    }

    pub(crate) fn request(&self, id: u64, method: &str, params: &str) -> Request<Full<Bytes>> {
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        post(&self.target, self.headers(), message)
    }

    pub(crate) fn notification(&self, method: &str) -> Request<Full<Bytes>> {
        let message = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        post(&self.target, self.headers(), message)
    }

    pub(crate) fn response(&self, id: &str, result: &str) -> Request<Full<Bytes>> {
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        post(&self.target, self.headers(), message)
    }

    /// Without `last_event_id`, requests the standalone stream.
    pub(crate) fn listen(&self, last_event_id: Option<&HeaderValue>) -> Request<Full<Bytes>> {
        let mut request = self.without_body(Method::GET);
        if let Some(id) = last_event_id {
            request.headers_mut().insert(LAST_EVENT_ID, id.clone());
        }
        request
    }

    pub(crate) fn end(&self) -> Request<Full<Bytes>> {
        self.without_body(Method::DELETE)
    }

    fn without_body(&self, method: Method) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = self.target.path.clone();
        let mut headers = self.headers();
        headers.remove(header::CONTENT_TYPE);
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream"),
        );
        *request.headers_mut() = headers;
        request
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = post_headers(&self.target, VERSION);
        if let Some(id) = &self.id {
            headers.insert(SESSION_ID, id.clone());
        }
        headers
    }
}

pub(crate) fn initialize(target: &Target, id: u64, capabilities: &str) -> Request<Full<Bytes>> {
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{VERSION}","capabilities":{capabilities},"clientInfo":{{"name":"loadtest","version":"{}"}}}}}}"#,
        env!("CARGO_PKG_VERSION")
    );
    post(target, post_headers(target, VERSION), message)
}
