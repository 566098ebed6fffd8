//! The settings of an edge, with defaults that are safe on a laptop.

use std::net::SocketAddr;
use std::time::Duration;

use shoal_ports::{NodeLimits, QuotaConfig, settings};

use crate::quotas::TrustedProxies;

settings! {
    /// Settings of an edge.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EdgeConfig {
        /// Path of the MCP endpoint, both eras.
        pub path: String = "/mcp".to_owned(),
        /// Paths of the HTTP+SSE transport of 2024-11-05; `None` turns it off.
        pub http_sse: Option<HttpSsePaths> = Some(HttpSsePaths::default()),
        /// Whether the answer to every POST is JSON: no call becomes a stream, and what it says before its answer is left out.
        pub json_response: bool = false,
        /// Serves sessions over WebSocket as well, at the path of the MCP endpoint.
        pub websocket: bool = false,
        /// Host names served besides the loopback ones, each with or without a port; `*` serves any.
        ///
        /// Guards local servers against DNS rebinding, so `*` is for servers that others reach anyway.
        pub allowed_hosts: Vec<String> = Vec::new(),
        /// Web origins that browsers may call from (`https://app.example.com`), besides loopback origins on
        /// a loopback host; `*` allows any.
        pub allowed_origins: Vec<String> = Vec::new(),
        /// Upper bounds; beyond each the answer is quick and says what to do. Those of sessions are for others.
        pub limits: NodeLimits = NodeLimits::default(),
        /// How much may be asked for. An edge that is told of other quotas ([`Edge::service_with`](crate::Edge::service_with)) goes by those.
        pub quotas: Vec<QuotaConfig> = Vec::new(),
        /// Proxies whose `X-Forwarded-For` is believed.
        pub trusted_proxies: TrustedProxies = TrustedProxies::default(),
        /// Times.
        pub timing: Timing = Timing::default(),
        /// Calls of modern clients that become tasks.
        pub tasks: TaskSettings = TaskSettings::default(),
    }
}

settings! {
    /// Calls of modern clients that become tasks.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TaskSettings {
        /// Whether there are any.
        pub enabled: bool = true,
        /// How long a call may take before it becomes a task, if its client declares the extension.
        pub after: Duration = Duration::from_millis(500),
    }
}

settings! {
    /// Paths of the HTTP+SSE transport.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HttpSsePaths {
        /// Where a client opens its stream.
        pub stream: String = "/sse".to_owned(),
        /// Where it posts its messages.
        pub messages: String = "/messages".to_owned(),
        /// What a proxy strips from the front of the path; told to clients as part of the message URL.
        pub public_base: String = String::new(),
    }
}

settings! {
    /// Times.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Timing {
        /// How long a body may take to arrive (`408`).
        pub body: Duration = Duration::from_secs(30),
        /// How long a large body waits, unread, for others to make room (`503`).
        pub body_room: Duration = Duration::from_secs(2),
        /// How long a modern call may be silent before its answer becomes a stream.
        pub stream_after: Duration = Duration::from_secs(1),
        /// How long a modern call may run.
        pub call_deadline: Duration = Duration::from_secs(300),
        /// How long a client may take to answer what a call asks.
        pub input: Duration = Duration::from_secs(600),
        /// Between two comments on a silent stream.
        pub keep_alive: Duration = Duration::from_secs(15),
        /// How long a client may consider the answer to `server/discover` fresh.
        pub discover_ttl: Duration = Duration::from_secs(300),
        /// When a drained stream's client comes back at the earliest.
        pub reconnect_after: Duration = Duration::from_secs(1),
        /// Over how much time such clients are spread, so that they do not all arrive at once.
        pub reconnect_spread: Duration = Duration::from_secs(4),
    }
}

impl EdgeConfig {
    /// Returns the defaults for a listener on `address`. A loopback address accepts only loopback
    /// host names. Other addresses accept any, because only the operator knows the names.
    pub fn for_address(address: SocketAddr) -> Self {
        let mut config = Self::default();
        if !address.ip().is_loopback() {
            config.allowed_hosts.push("*".to_owned());
        }
        config
    }
}
