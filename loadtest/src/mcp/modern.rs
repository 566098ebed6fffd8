//! Requests of revision 2026-07-28: no session, the client's description in each `_meta`.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::Full;

use super::{post, post_headers};
use crate::target::Target;

const VERSION: &str = "2026-07-28";

pub(crate) const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// `name` goes to the header for routing. `params` and `meta` are JSON objects without their
/// braces, `capabilities` is a JSON object.
pub(crate) fn request(
    target: &Target,
    id: u64,
    method: &'static str,
    name: Option<&HeaderValue>,
    params: &str,
    meta: &str,
    capabilities: &str,
) -> Request<Full<Bytes>> {
    let mut headers = post_headers(target, VERSION);
    headers.insert(METHOD, HeaderValue::from_static(method));
    if let Some(name) = name {
        headers.insert(NAME, name.clone());
    }
    let meta_comma = if meta.is_empty() { "" } else { "," };
    let comma = if params.is_empty() { "" } else { "," };
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{{meta}{meta_comma}"io.modelcontextprotocol/protocolVersion":"{VERSION}","io.modelcontextprotocol/clientInfo":{{"name":"loadtest","version":"{}"}},"io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#,
        env!("CARGO_PKG_VERSION")
    );
    post(target, headers, message)
}
