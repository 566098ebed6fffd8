use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
const DEFAULT_HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Accept, Authorization, DPoP, Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID, \
     Mcp-Method, Mcp-Name",
);
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origin was checked before, and [`allow`] adds its header.
pub(crate) fn preflight(request: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, METHODS);
    if request.contains_key(header::ORIGIN) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        // Allows all headers that the page asks for, because tools may mirror arguments into
        // headers of any name (`Mcp-Param-*`).
        let asked = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            asked.cloned().unwrap_or(DEFAULT_HEADERS),
        );
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
    response
}

pub(crate) fn allow(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}
