use std::net::SocketAddr;
use std::time::Duration;

use shoal_ports::{NodeLimits, QuotaConfig, settings};

use crate::trusted_proxies::TrustedProxies;

settings! {
    /// Settings of an edge.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EdgeConfig {
        /// Path of the MCP endpoint, for both eras.
        pub path: String = "/mcp".to_owned(),
        /// Paths of the HTTP+SSE transport (2024-11-05). `None` turns the transport off.
        pub http_sse: Option<HttpSsePaths> = Some(HttpSsePaths::default()),
        /// Answers every POST with JSON instead of a stream. Clients then get no progress, log messages or questions of
        /// a call.
        pub json_response: bool = false,
        /// Also serves sessions over WebSocket, on the path of the MCP endpoint.
        pub websocket: bool = false,
        /// Host names, with or without a port, that clients may use besides loopback names; `*` allows any.
        ///
        /// This protects local servers from DNS rebinding. Use `*` only for servers that other machines can reach.
        pub allowed_hosts: Vec<String> = Vec::new(),
        /// Origins of web pages that may call, such as `https://app.example.com`; `*` allows any. Loopback origins are
        /// also allowed on a loopback host.
        pub allowed_origins: Vec<String> = Vec::new(),
        /// Limits of the node. The edge enforces the limits on requests and streams.
        pub limits: NodeLimits = NodeLimits::default(),
        /// Quotas on requests. [`Edge::service_with`](crate::Edge::service_with) uses its own quotas instead.
        pub quotas: Vec<QuotaConfig> = Vec::new(),
        /// Proxies whose `X-Forwarded-For` the edge trusts.
        pub trusted_proxies: TrustedProxies = TrustedProxies::default(),
        /// Timeouts and intervals.
        pub timing: Timing = Timing::default(),
        /// Calls of modern clients that become tasks.
        pub tasks: TaskSettings = TaskSettings::default(),
    }
}

settings! {
    /// Settings of calls of modern clients that become tasks.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TaskSettings {
        /// Offers tasks to modern clients.
        pub enabled: bool = true,
        /// How long a call runs before it becomes a task, if its client declares the extension.
        pub after: Duration = Duration::from_millis(500),
    }
}

settings! {
    /// Paths of the HTTP+SSE transport.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HttpSsePaths {
        /// Path where a client opens its stream.
        pub stream: String = "/sse".to_owned(),
        /// Path where a client posts its messages.
        pub messages: String = "/messages".to_owned(),
        /// Path prefix that a proxy strips. The edge adds the prefix to the message URL that it sends to clients.
        pub public_base: String = String::new(),
    }
}

settings! {
    /// Timeouts and intervals of an edge.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Timing {
        /// Maximum time for a request's body to arrive. Then the edge answers `408`.
        pub body: Duration = Duration::from_secs(30),
        /// How long a large body waits for free memory before the edge reads it. Then the edge answers `503`.
        pub body_room: Duration = Duration::from_secs(2),
        /// How long a modern call may be silent before its answer becomes a stream.
        pub stream_after: Duration = Duration::from_secs(1),
        /// Maximum time of a modern call.
        pub call_deadline: Duration = Duration::from_secs(300),
        /// Maximum time for a client to answer the questions of a call.
        pub input: Duration = Duration::from_secs(600),
        /// Interval between comments on a silent stream.
        pub keep_alive: Duration = Duration::from_secs(15),
        /// How long modern clients may cache the answer to `server/discover`.
        pub discover_ttl: Duration = Duration::from_secs(300),
        /// Minimum time before clients reconnect to a stream that the edge closed to drain.
        pub reconnect_after: Duration = Duration::from_secs(1),
        /// Time over which the edge spreads these reconnections, in addition to `reconnect_after`.
        pub reconnect_spread: Duration = Duration::from_secs(4),
    }
}

impl EdgeConfig {
    /// Returns the defaults for a listener on `address`. A loopback address accepts only loopback
    /// host names. Other addresses accept any.
    pub fn for_address(address: SocketAddr) -> Self {
        let mut config = Self::default();
        if !address.ip().is_loopback() {
            config.allowed_hosts.push("*".to_owned());
        }
        config
    }
}
