//! What an operator can set at an edge, with defaults that are safe on a laptop.

use std::net::SocketAddr;
use std::time::Duration;

/// Settings of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeConfig {
    /// Path of the MCP endpoint, both eras.
    pub path: String,
    /// Paths of the HTTP+SSE transport of 2024-11-05; `None` turns it off.
    pub http_sse: Option<HttpSsePaths>,
    /// Host names served besides the loopback ones, each with or without a port; `*` serves any.
    ///
    /// Guards local servers against DNS rebinding, so `*` is for servers that others reach anyway.
    pub allowed_hosts: Vec<String>,
    /// Web origins that browsers may call from (`https://app.example.com`), besides loopback origins on
    /// a loopback host; `*` allows any.
    pub allowed_origins: Vec<String>,
    /// Upper bounds.
    pub limits: Limits,
    /// Times.
    pub timing: Timing,
}

/// Paths of the HTTP+SSE transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSsePaths {
    /// Where a client opens its stream.
    pub stream: String,
    /// Where it posts its messages.
    pub messages: String,
    /// What a proxy strips from the front of the path; told to clients as part of the message URL.
    pub public_base: String,
}

/// Upper bounds; beyond each the answer is quick and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one request's body (`413`).
    pub body_bytes: usize,
    /// Bytes of all large requests that this node holds (`503`), from before they are read until they are answered; bodies of
    /// up to 16 KiB are not among them. Less than [`body_bytes`](Self::body_bytes) is as much as that.
    pub bodies_in_flight_bytes: usize,
    /// The same for one principal (`429`); the anonymous principal is everybody and has no such bound.
    pub bodies_in_flight_bytes_per_principal: usize,
    /// Bytes of answers over 16 KiB that wait to be read by their clients (`503`). Where there is no room, what stands still is
    /// given up first.
    pub answers_waiting_bytes: usize,
    /// The same for one principal (`429`); the anonymous principal is everybody and has no such bound.
    pub answers_waiting_bytes_per_principal: usize,
    /// Levels of objects and arrays within a body (`400`).
    pub nesting: usize,
    /// Header fields of one request (`431`).
    pub header_count: usize,
    /// Bytes of all header fields of one request (`431`).
    pub header_bytes: usize,
    /// POSTs under way on this node, streamed answers included (`503`).
    pub requests_in_flight: usize,
    /// The same for one principal (`429`); the anonymous principal is everybody and has no such bound.
    pub requests_per_principal: usize,
    /// Streams that clients hold open on this node: GET, HTTP+SSE, `subscriptions/listen` (`503`).
    pub streams: usize,
    /// The same for one principal (`429`); the anonymous principal is everybody and has no such bound.
    pub streams_per_principal: usize,
    /// Resource URIs of one `subscriptions/listen` (`400`).
    pub uris_per_listener: usize,
    /// Different resources that may wait for one `subscriptions/listen` client before it is cut.
    pub updates_per_listener: usize,
}

/// Times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a body may take to arrive (`408`).
    pub body: Duration,
    /// How long a large body waits, unread, for others to make room (`503`).
    pub body_room: Duration,
    /// How long a modern call may be silent before its answer becomes a stream.
    pub stream_after: Duration,
    /// How long a modern call may run.
    pub call_deadline: Duration,
    /// Between two comments on a silent stream.
    pub keep_alive: Duration,
    /// How long a client may consider the answer to `server/discover` fresh.
    pub discover_ttl: Duration,
    /// When a drained stream's client comes back at the earliest.
    pub reconnect_after: Duration,
    /// Over how much time such clients are spread, so that they do not all arrive at once.
    pub reconnect_spread: Duration,
    /// How long a drained HTTP+SSE stream stays open for the answers of calls under way: its client
    /// cannot resume it anywhere.
    pub single_stream_drain: Duration,
}

impl Default for EdgeConfig {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            http_sse: Some(HttpSsePaths::default()),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            limits: Limits::default(),
            timing: Timing::default(),
        }
    }
}

impl EdgeConfig {
    /// The defaults for a listener on `address`: only loopback host names on a loopback address, any
    /// elsewhere, where clients come by names that only the operator knows.
    pub fn for_address(address: SocketAddr) -> Self {
        let mut config = Self::default();
        if !address.ip().is_loopback() {
            config.allowed_hosts.push("*".to_owned());
        }
        config
    }
}

impl Default for HttpSsePaths {
    fn default() -> Self {
        Self {
            stream: "/sse".to_owned(),
            messages: "/messages".to_owned(),
            public_base: String::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            bodies_in_flight_bytes: 64 << 20,
            bodies_in_flight_bytes_per_principal: 16 << 20,
            answers_waiting_bytes: 256 << 20,
            answers_waiting_bytes_per_principal: 64 << 20,
            nesting: 64,
            header_count: 100,
            header_bytes: 32 << 10,
            requests_in_flight: 16_384,
            requests_per_principal: 4_096,
            streams: 65_536,
            streams_per_principal: 1_024,
            uris_per_listener: 256,
            updates_per_listener: 64,
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            body: Duration::from_secs(30),
            body_room: Duration::from_secs(2),
            stream_after: Duration::from_secs(1),
            call_deadline: Duration::from_secs(300),
            keep_alive: Duration::from_secs(15),
            discover_ttl: Duration::from_secs(300),
            reconnect_after: Duration::from_secs(1),
            reconnect_spread: Duration::from_secs(4),
            single_stream_drain: Duration::from_secs(5),
        }
    }
}
