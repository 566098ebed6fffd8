//! HTTP requests, and the bytes of bodies and event streams.

use std::time::Duration;

use super::definition::{Attribute, HTTP_SECONDS, Kind, definitions};
use super::instrument::{Counter, Factory, Histogram};
use super::labels::{DIRECTION, KIND, REASON, label, labels, number};
use super::mcp::HttpVersion;
use super::observed::{Observed, Registration, float};

const METHOD: &str = "http.request.method";
const ROUTE: &str = "http.route";
const STATUS: &str = "http.response.status_code";
const SCHEME: &str = "url.scheme";
const VERSION: &str = "network.protocol.version";

/// A node speaks plain HTTP: TLS ends in front of it.
const HTTP: &str = "http";

const METHODS: &[&str] = &["GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT"];

definitions! {
    REQUESTS = Kind::Histogram(HTTP_SECONDS), "http.server.request.duration", "s",
        "HTTP requests, until the head of the answer is sent.",
        [
            Attribute::one_or_other(METHOD, METHODS),
            Attribute::code(ROUTE, "the paths that a node serves"),
            Attribute::code(STATUS, "the statuses that a node answers with"),
            Attribute::one_of(SCHEME, &[HTTP]),
            Attribute::one_of(VERSION, HttpVersion::VALUES),
        ];
    ACTIVE = Kind::UpDownCounter, "http.server.active_requests", "{request}",
        "HTTP requests under way.", [];
    BODIES = Kind::UpDownCounter, "shoal.http.bodies.size", "By",
        "Bytes held for large requests, until they are answered.", [];
    ANSWERS = Kind::UpDownCounter, "shoal.http.answers.size", "By",
        "Bytes of large answers, and of large events of streams, that wait to be read by their clients.", [];
    GIVEN_UP = Kind::Counter, "shoal.http.answers.given_up", "{answer}",
        "Answers and streams that were ended because their clients did not read them.",
        [Attribute::one_of(REASON, GivenUp::VALUES)];
    BYTES = Kind::Counter, "shoal.http.io", "By",
        "Bytes of HTTP bodies and event streams.",
        [
            Attribute::one_of(DIRECTION, Direction::VALUES),
            Attribute::one_of(KIND, Body::VALUES),
        ];
    EVENTS = Kind::Counter, "shoal.http.events", "{event}",
        "Server-sent events that were written to clients.", [];
    REFUSED = Kind::Counter, "shoal.http.refused", "{request}",
        "Requests that were refused before they reached a session or a tool.",
        [Attribute::one_of(REASON, RefusalReason::VALUES)];
}

labels! {
    /// Which way bytes go, seen from this process.
    Direction {
        /// Towards this process.
        In = "in",
        /// Away from it.
        Out = "out",
    }
}

labels! {
    /// What the bytes belong to.
    Body {
        /// A body of known end.
        Plain = "plain",
        /// An event stream.
        Sse = "sse",
    }
}

labels! {
    /// Why an answer was given up.
    GivenUp {
        /// Nothing was taken of it for as long as a connection may stand still.
        Stalled = "stalled",
        /// It stood still, and others needed the room.
        Crowded = "crowded",
    }
}

labels! {
    /// Why a request was refused.
    RefusalReason {
        /// The host or origin may not call.
        Origin = "origin",
        /// No token, or one that is not valid.
        Unauthenticated = "unauthenticated",
        /// The caller may not do this.
        Forbidden = "forbidden",
        /// A path or method that is not served.
        NotServed = "not_served",
        /// Headers that are missing, wrong or too many.
        Headers = "headers",
        /// A body that is too large.
        BodyTooLarge = "body_too_large",
        /// A body that did not arrive.
        BodyBroken = "body_broken",
        /// No JSON-RPC message, or one that breaks the rules of MCP.
        Malformed = "malformed",
        /// A protocol revision that is not supported.
        Revision = "revision",
        /// The session is unknown or has ended.
        SessionGone = "session_gone",
        /// The node has as many requests or streams as it takes.
        Overloaded = "overloaded",
        /// The caller's quota is used up.
        Quota = "quota",
        /// The node is stopping.
        Draining = "draining",
        /// What the answer needs cannot be reached.
        Unavailable = "unavailable",
        /// Anything else.
        Other = "other",
    }
}

/// An HTTP request that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpRequest<'a> {
    /// Its method.
    pub method: &'a str,
    /// The pattern of its path; `_OTHER` is for paths that are not served.
    pub route: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// The version of HTTP.
    pub version: HttpVersion,
}

/// HTTP and event streams.
#[derive(Debug)]
pub struct HttpMetrics {
    requests: Histogram,
    active: Observed,
    bodies: Observed,
    answers: Observed,
    given_up: Counter,
    bytes: Counter,
    events: Counter,
    refused: Counter,
}

impl HttpMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            requests: factory.histogram(&REQUESTS),
            active: factory.observed(&ACTIVE),
            bodies: factory.observed(&BODIES),
            answers: factory.observed(&ANSWERS),
            given_up: factory.counter(&GIVEN_UP),
            bytes: factory.counter(&BYTES),
            events: factory.counter(&EVENTS),
            refused: factory.counter(&REFUSED),
        }
    }

    /// The head of an answer was sent `duration` after the request's head came.
    pub fn answered(&self, duration: Duration, request: HttpRequest<'_>) {
        self.requests.record(duration, || {
            let method = METHODS.iter().find(|known| **known == request.method);
            [
                label(METHOD, method.map_or(super::OTHER, |known| known)),
                label(ROUTE, request.route),
                number(STATUS, i64::from(request.status)),
                label(SCHEME, HTTP),
                label(VERSION, request.version.as_str()),
            ]
        });
    }

    /// How many requests are under way.
    pub fn observe_active(&self, read: impl Fn() -> u64 + Send + Sync + 'static) -> Registration {
        self.active.number(move || float(read()))
    }

    /// How many bytes of answers wait to be read.
    pub fn observe_answers(&self, read: impl Fn() -> u64 + Send + Sync + 'static) -> Registration {
        self.answers.number(move || float(read()))
    }

    /// An answer was given up.
    pub fn given_up(&self, reason: GivenUp) {
        self.given_up.add(1, || [label(REASON, reason.as_str())]);
    }

    /// How many bytes large requests hold.
    pub fn observe_bodies(&self, read: impl Fn() -> u64 + Send + Sync + 'static) -> Registration {
        self.bodies.number(move || float(read()))
    }

    /// Bytes went through.
    pub fn bytes(&self, direction: Direction, body: Body, bytes: u64) {
        self.bytes.add(bytes, || {
            [
                label(DIRECTION, direction.as_str()),
                label(KIND, body.as_str()),
            ]
        });
    }

    /// Events were written to clients.
    pub fn events(&self, count: u64) {
        self.events.add(count, || []);
    }

    /// A request was refused.
    pub fn refused(&self, reason: RefusalReason) {
        self.refused.add(1, || [label(REASON, reason.as_str())]);
    }
}
