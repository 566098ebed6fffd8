use std::time::Duration;

use super::area::area;
use super::definition::{Attribute, HTTP_SECONDS};
use super::labels::{DIRECTION, KIND, PROTOCOL_VERSION, REASON, label, labels, number};
use super::mcp::HttpVersion;

const METHOD: &str = "http.request.method";
const ROUTE: &str = "http.route";
const STATUS: &str = "http.response.status_code";
const SCHEME: &str = "url.scheme";

/// The scheme of the connection to this process. TLS that ends in a proxy does not count.
const SCHEMES: &[&str] = &[HTTP, HTTPS];
const HTTP: &str = "http";
const HTTPS: &str = "https";

const METHODS: &[&str] = &["GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT"];

const REQUEST_ATTRIBUTES: &[Attribute] = &[
    Attribute::one_or_other(METHOD, METHODS),
    Attribute::code(ROUTE, "paths that Shoal serves"),
    Attribute::code(STATUS, "HTTP statuses"),
    Attribute::one_of(SCHEME, SCHEMES),
    Attribute::one_of(PROTOCOL_VERSION, HttpVersion::VALUES),
];

area! {
    /// The metrics of HTTP and event streams.
    HttpMetrics {
        requests: Histogram(HTTP_SECONDS) [in REQUEST_ATTRIBUTES]
            = "http.server.request.duration", "s", "Time of HTTP requests, until the answer's headers.";
        /// Observes requests in progress.
        pub observe_active: UpDownCounter(u64) []
            = "http.server.active_requests", "{request}", "HTTP requests in progress.";
        /// Observes the bytes of large requests.
        pub observe_bodies: UpDownCounter(u64) []
            = "shoal.http.bodies.size", "By", "Bytes of unanswered requests over 16 KiB each.";
        /// Observes the bytes of waiting answers.
        pub observe_answers: UpDownCounter(u64) []
            = "shoal.http.answers.size", "By",
            "Bytes of unread answers and stream events over 16 KiB each.";
        /// Counts an answer that was given up.
        pub given_up: Counter [reason: GivenUp]
            = "shoal.http.answers.given_up", "{answer}",
            "Answers and streams that Shoal ended because clients did not read.";
        /// Counts bytes of bodies and streams.
        pub bytes: Sum [direction: Direction, body: Body]
            = "shoal.http.io", "By", "Bytes of HTTP bodies and event streams.";
        /// Counts events written to clients.
        pub events: Sum []
            = "shoal.http.events", "{event}", "Server-sent events written to clients.";
        /// Counts a refused request.
        pub refused: Counter [reason: RefusalReason]
            = "shoal.http.refused", "{request}", "Requests refused before they reached a session or tool.";
    }
}

labels! {
    /// A direction, seen from this process.
    Direction: DIRECTION {
        /// To this process.
        In = "in",
        /// From this process.
        Out = "out",
    }
}

labels! {
    /// The kind of body.
    Body: KIND {
        /// Not streamed, such as JSON.
        Plain = "plain",
        /// SSE.
        Sse = "sse",
        /// WebSocket.
        WebSocket = "websocket",
    }
}

labels! {
    /// Why an answer was given up.
    GivenUp: REASON {
        /// Unread for `server.write_timeout`.
        Stalled = "stalled",
        /// Unread for a second, while other answers needed memory.
        Crowded = "crowded",
    }
}

labels! {
    /// Why a request was refused.
    RefusalReason: REASON {
        /// Host or origin not allowed.
        Origin = "origin",
        /// Token missing or invalid.
        Unauthenticated = "unauthenticated",
        /// Token lacks a scope.
        Forbidden = "forbidden",
        /// Unknown path or method.
        NotServed = "not_served",
        /// Headers missing, wrong or too many.
        Headers = "headers",
        /// Body too large.
        BodyTooLarge = "body_too_large",
        /// Body incomplete.
        BodyBroken = "body_broken",
        /// Invalid JSON-RPC or MCP.
        Malformed = "malformed",
        /// Unsupported protocol revision.
        Revision = "revision",
        /// Session unknown or ended.
        SessionGone = "session_gone",
        /// Limit of the node reached.
        Overloaded = "overloaded",
        /// Quota or principal's limit reached.
        Quota = "quota",
        /// Needed part not ready or unreachable.
        Unavailable = "unavailable",
        /// Other.
        Other = "other",
    }
}

/// An answered HTTP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The pattern of the path, or `_OTHER` for unknown paths.
    pub route: &'static str,
    /// The status.
    pub status: u16,
    /// Whether TLS ended in this process.
    pub over_tls: bool,
    /// The HTTP version.
    pub version: HttpVersion,
}

impl HttpMetrics {
    /// Records an answer's head, sent `duration` after the request's head arrived.
    pub fn answered(&self, duration: Duration, request: HttpRequest<'_>) {
        self.requests.record(duration, || {
            let method = METHODS.iter().find(|known| **known == request.method);
            [
                label(METHOD, method.map_or(super::OTHER, |known| known)),
                label(ROUTE, request.route),
                number(STATUS, i64::from(request.status)),
                label(SCHEME, if request.over_tls { HTTPS } else { HTTP }),
                label(PROTOCOL_VERSION, request.version.as_str()),
            ]
        });
    }
}
