use axum::body::to_bytes;
use axum::response::Response;
use http::{StatusCode, header};

use super::refuse;

const LONGEST: usize = 4 * 1024;

/// Converts the router's own errors to `{"error": "…"}`.
pub(super) async fn in_json(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let is_error = parts.status.is_client_error() || parts.status.is_server_error();
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_error || is_json {
        return Response::from_parts(parts, body);
    }
    let said = to_bytes(body, LONGEST).await.unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let status = parts.status;
    let other = said.trim();
    let reason = match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            "this method is not allowed here; Allow names those that are"
        }
        StatusCode::PAYLOAD_TOO_LARGE => "the body is larger than this path takes",
        _ if other.is_empty() => status.canonical_reason().unwrap_or("refused"),
        _ => other,
    };
    let mut refusal = refuse(status, reason);
    for (name, value) in &parts.headers {
        let of_body = [header::CONTENT_TYPE, header::CONTENT_LENGTH];
        if !of_body.contains(name) {
            refusal.headers_mut().insert(name, value.clone());
        }
    }
    refusal
}
