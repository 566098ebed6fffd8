use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use shoal_protocol::{error_response, error_response_without_id};
use shoal_telemetry::metrics::metrics;

use crate::refusal::{Refusal, seconds};
use crate::refused::RefusedMessage;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Capacity of the header table, which hyper reuses for the connection's next request.
const REQUEST_HEADERS: usize = 12;

const WEBSOCKET_VERSION: HeaderValue = HeaderValue::from_static("13");

pub(crate) fn json(status: StatusCode, text: Bytes) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let mut headers = HeaderMap::with_capacity(REQUEST_HEADERS);
    headers.insert(header::CONTENT_TYPE, JSON);
    *response.headers_mut() = headers;
    response
}

pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// In whole seconds, at least 1.
pub(crate) fn retry_after(response: &mut Response, wait: Duration) {
    let seconds = seconds(wait);
    if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
}

pub(crate) fn refusal_text(refused: &RefusedMessage) -> Bytes {
    let why = &*refused.why;
    let status = why.status();
    let error = why.error();
    if status.is_server_error() {
        let kind = why.reason().as_str();
        tracing::warn!(refusal = kind, status = status.as_u16(), error = %why, "refused a request");
    } else {
        tracing::debug!(status = status.as_u16(), error = %why, "refused a request");
    }
    metrics().http.refused(why.reason());
    match &refused.id {
        Some(id) => error_response(id, &error),
        None => error_response_without_id(&error),
    }
}

pub(crate) fn refusal(refused: &RefusedMessage) -> Response {
    let why = &*refused.why;
    let mut response = json(why.status(), refusal_text(refused));
    if let Some(wait) = why.retry_after() {
        retry_after(&mut response, wait);
    }
    let headers = response.headers_mut();
    match why {
        Refusal::MethodNotAllowed { allow } => {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        Refusal::WebSocketVersion => {
            headers.insert(header::SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION);
        }
        _ => {}
    }
    response
}

pub(crate) fn challenge(response: &mut Response, challenges: &[String]) {
    let values = challenges.iter();
    for value in values.filter_map(|text| HeaderValue::from_str(text).ok()) {
        (response.headers_mut()).append(header::WWW_AUTHENTICATE, value);
    }
}
