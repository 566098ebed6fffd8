pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod job;
pub(crate) mod legacy;
pub(crate) mod modern;
pub(crate) mod tools;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::Full;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::target::Target;

pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Both eras require that clients accept both types.
const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The era that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Revision 2025-11-25: `initialize`, and a session if the server offers one.
    Legacy,
    /// Revision 2026-07-28: self-contained requests.
    Modern,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// Returns the value of the header `Authorization`.
pub(crate) fn bearer(token: &str) -> HeaderValue {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.expect("a token's characters may stand in a header");
    value.set_sensitive(true);
    value
}

/// Returns an entry of Shoal's setting `auth.tokens`.
pub(crate) fn token_entry(name: &str, token: &str) -> String {
    let hash = Sha256::digest(token);
    format!(r#"{{name="{name}",sha256="{hash:x}"}}"#)
}

fn post_headers(target: &Target, version: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::HOST, target.host.clone());
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::ACCEPT, ACCEPT_BOTH);
    headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version));
    if let Some(authorization) = &target.authorization {
        headers.insert(header::AUTHORIZATION, authorization.clone());
    }
    headers
}

fn post(target: &Target, headers: HeaderMap, message: String) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::from(message)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target.path.clone();
    *request.headers_mut() = headers;
    request
}
