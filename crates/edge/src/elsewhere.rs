//! Answers paths without MCP, for load balancers and probing clients.
//!
//! Any page may read the answers. They are JSON, but not JSON-RPC errors, which clients would take
//! for an MCP endpoint.

use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::json;
use shoal_telemetry::metrics::{RefusalReason, metrics};

use crate::state::EdgeState;
use crate::{answer, cors};

const HEALTH: [&str; 2] = ["/", "/healthz"];
const ALIVE: Bytes = Bytes::from_static(br#"{"status":"ok"}"#);
const ANY: HeaderValue = HeaderValue::from_static("*");

pub(crate) fn answer(edge: &EdgeState, head: &Parts) -> Response {
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    let mut response = if head.method == Method::OPTIONS {
        cors::preflight(&head.headers)
    } else if reads && HEALTH.contains(&head.uri.path()) {
        answer::json(StatusCode::OK, ALIVE)
    } else {
        metrics().http.refused(RefusalReason::NotServed);
        answer::json(StatusCode::NOT_FOUND, nothing(&edge.config.endpoint.path))
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    response
}

/// An OAuth error, because most clients that ask for other paths look for an authorization server.
fn nothing(path: &str) -> Bytes {
    let body = json!({
        "error": "not_found",
        "error_description": format!("there is nothing here: MCP is served at {path}"),
    });
    body.to_string().into()
}
