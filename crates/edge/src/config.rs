use std::net::SocketAddr;
use std::time::Duration;

use shoal_ports::{
    CallSettings, CatalogSettings, NodeLimits, QuotaConfig, StreamSettings, TaskSettings, settings,
};

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
        /// Maximum time for a request's body to arrive. Then the edge answers `408`.
        pub body_timeout: Duration = Duration::from_secs(30),
        /// How long a large body waits for free memory before the edge reads it. Then the edge answers `503`.
        pub body_wait: Duration = Duration::from_secs(2),
        /// Streams.
        pub streams: StreamSettings = StreamSettings::default(),
        /// Calls.
        pub calls: CallSettings = CallSettings::default(),
        /// Lists that clients may cache.
        pub catalog: CatalogSettings = CatalogSettings::default(),
        /// Calls of modern clients that become tasks.
        pub tasks: TaskSettings = TaskSettings::default(),
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
