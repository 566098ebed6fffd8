//! The public document of the protected resource (RFC 9728).

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};

use crate::answer;

const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=300");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
const ANY: HeaderValue = HeaderValue::from_static("*");

pub(crate) fn answer(head: &Parts, document: &Bytes) -> Response {
    let mut response = match head.method {
        Method::GET => answer::json(StatusCode::OK, document.clone()),
        Method::HEAD => answer::json(StatusCode::OK, Bytes::new()),
        Method::OPTIONS => answer::empty(StatusCode::NO_CONTENT),
        _ => {
            let mut refused = Response::new(Body::from("read this with GET\n"));
            *refused.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            refused
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    if head.method == Method::OPTIONS {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ANY);
    } else {
        headers.insert(header::CACHE_CONTROL, FRESH);
    }
    response
}
