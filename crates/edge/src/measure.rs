use std::collections::BTreeSet;
use std::time::Instant;

use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Version};
use http_body::Body as _;
use parking_lot::Mutex;
use shoal_ports::{AuthError, Authenticated};
use shoal_protocol::{EventId, TraceContext};
use shoal_telemetry::metrics::{
    self, AuthOutcome, Body, Direction, HttpRequest, HttpVersion, OTHER, metrics,
};
use shoal_telemetry::trace::{self, Attributes, Span, attributes, names};

use crate::connection::Connection;
use crate::names as headers;
use crate::refusal::Refusal;
use crate::upgrade;

pub(crate) const ELSEWHERE: &str = OTHER;

/// Leaks one copy of each path: a process has few configured paths.
pub(crate) fn route(path: &str) -> &'static str {
    static ROUTES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut routes = ROUTES.lock();
    if let Some(known) = routes.get(path) {
        return known;
    }
    let kept: &'static str = Box::leak(path.to_owned().into_boxed_str());
    routes.insert(kept);
    kept
}

/// A body of known length counts as sent with its head.
pub(crate) fn answered(route: &'static str, head: &Parts, began: Instant, response: &Response) {
    if !metrics::enabled() {
        return;
    }
    let http = &metrics().http;
    http.answered(
        began.elapsed(),
        HttpRequest {
            method: head.method.as_str(),
            route,
            status: response.status().as_u16(),
            over_tls: Connection::of(&head.extensions).is_some_and(|it| it.peer.over_tls),
            version: version(head.version),
        },
    );
    if let Some(bytes) = response.body().size_hint().exact() {
        http.bytes(Direction::Out, Body::Plain, bytes);
    }
}

pub(crate) fn authenticated(method: &'static str, answer: &Result<Authenticated, AuthError>) {
    if !metrics::enabled() {
        return;
    }
    let security = &metrics().security;
    match answer {
        Ok(_) => security.authenticated(method, AuthOutcome::Accepted, "none"),
        Err(why) => {
            let (outcome, reason) = outcome(why);
            security.authenticated(method, outcome, reason);
        }
    }
}

pub(crate) fn not_enough(method: &'static str, why: &AuthError) {
    let (outcome, reason) = outcome(why);
    metrics().security.authenticated(method, outcome, reason);
}

pub(crate) fn outcome(why: &AuthError) -> (AuthOutcome, &'static str) {
    match why {
        AuthError::Missing => (AuthOutcome::Missing, "none"),
        AuthError::Invalid => (AuthOutcome::Invalid, "unknown"),
        AuthError::Token(fault) => (AuthOutcome::Invalid, fault.label()),
        AuthError::Proof(fault) => (AuthOutcome::Invalid, fault.label()),
        AuthError::TooManyProofs { .. } => (AuthOutcome::Unavailable, "proof_limit"),
        AuthError::Scope(_) => (AuthOutcome::Insufficient, "scope"),
        AuthError::Unavailable { .. } => (AuthOutcome::Unavailable, "none"),
    }
}

pub(crate) fn version(version: Version) -> HttpVersion {
    match version {
        Version::HTTP_09 | Version::HTTP_10 => HttpVersion::Http10,
        Version::HTTP_2 => HttpVersion::Http2,
        _ => HttpVersion::Http11,
    }
}

pub(crate) fn parent(given: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &HeaderName| given.get(name)?.to_str().ok();
    TraceContext::parse(text(&headers::TRACEPARENT)?, text(&headers::TRACESTATE))
}

/// The span of a GET or DELETE ends with the head of the answer. A POST has its message's span.
pub(crate) fn span(route: &'static str, head: &Parts) -> Span {
    if !trace::enabled() || !matches!(head.method, Method::GET | Method::DELETE) {
        return Span::none();
    }
    let parent = parent(&head.headers);
    trace::server(|| names::http_name(head.method.as_str(), route))
        .parent(parent.as_ref())
        .start_with(|set| {
            let text = |name| head.headers.get(name)?.to_str().ok();
            set.set(attributes::HTTP_REQUEST_METHOD, head.method.as_str())
                .set(attributes::HTTP_ROUTE, route)
                .set_some(attributes::MCP_SESSION_ID, text(&headers::SESSION_ID))
                .set_some(
                    attributes::MCP_PROTOCOL_VERSION,
                    text(&headers::PROTOCOL_VERSION),
                );
            if head.method == Method::GET {
                let cursor = text(&headers::LAST_EVENT_ID).filter(|it| !it.is_empty());
                let cursor = cursor.map(str::parse::<EventId>);
                let reason = if cursor.is_some() { "resume" } else { "listen" };
                set.set(attributes::REASON, reason);
                if let Some(Ok(cursor)) = cursor {
                    set.set(attributes::STREAM_ID, &cursor.stream.to_string());
                }
            }
            set_connection(set, head);
        })
}

pub(crate) fn end(mut span: Span, answer: Result<&Response, &Refusal>) {
    if !span.is_recording() {
        return;
    }
    let status = match answer {
        Ok(response) => response.status(),
        Err(why) => {
            span.record_error(&why.error().code.to_string());
            why.status()
        }
    };
    span.set(
        attributes::HTTP_RESPONSE_STATUS_CODE,
        i64::from(status.as_u16()),
    );
}

pub(crate) fn set_connection(set: &mut Attributes, head: &Parts) {
    let (protocol, version) = match upgrade::asks_for_websocket(&head.headers) {
        true => ("websocket", "13"),
        false => ("http", version(head.version).as_str()),
    };
    set.set(attributes::ROLE, "edge")
        .set(attributes::NETWORK_TRANSPORT, "tcp")
        .set(attributes::NETWORK_PROTOCOL_NAME, protocol)
        .set(attributes::NETWORK_PROTOCOL_VERSION, version);
    if let Some(address) = Connection::of(&head.extensions).and_then(|it| it.peer.address) {
        set.set(attributes::CLIENT_ADDRESS, address.ip())
            .set(attributes::CLIENT_PORT, i64::from(address.port()));
    }
}
