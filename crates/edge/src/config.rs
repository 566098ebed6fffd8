use std::net::SocketAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{
    CallSettings, CatalogSettings, NodeLimits, Period, QuotaConfig, StreamSettings, TaskSettings,
    settings,
};

settings! {
    /// The MCP endpoint: the edge's part of `[server]`.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default)]
    pub struct EndpointConfig {
        /// Path of the MCP endpoint.
        pub path: String = "/mcp".to_owned(),
        /// Also serves HTTP+SSE (2024-11-05) on `/sse` and `/messages`.
        pub http_sse: bool = true,
        /// Answers every POST with JSON, for clients that cannot read streams. Clients then get no progress, log
        /// messages or questions.
        pub json_response: bool = false,
        /// Also serves WebSocket on the MCP path (draft SEP-1288).
        pub websocket: bool = false,
        /// Path prefix that your proxy strips. Shoal adds it to the URL that HTTP+SSE clients get.
        pub public_base: String = String::new(),
        /// Accepted `Host` names; `"*"` allows any. Loopback names always pass. Without this list, all names pass if
        /// `listen` is beyond loopback.
        // This protects local servers from DNS rebinding.
        pub allowed_hosts: Vec<String> = Vec::new(),
        /// Origins of web pages that may call; `"*"` allows any. Requests without `Origin` pass.
        // Loopback origins also pass on a loopback host.
        pub allowed_origins: Vec<String> = Vec::new(),
        /// Proxies (addresses, networks) whose `X-Forwarded-For` Shoal trusts for address quotas and the audit trail.
        pub trusted_proxies: Vec<String> = Vec::new(),
        /// Time limit for a request's body.
        pub body_timeout: Period = Period::seconds(30),
    }
}

settings! {
    /// Settings of an edge.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EdgeConfig {
        /// The MCP endpoint.
        pub endpoint: EndpointConfig = EndpointConfig::default(),
        /// Limits of the node. The edge enforces the limits on requests and streams.
        pub limits: NodeLimits = NodeLimits::default(),
        /// Quotas on requests. [`Edge::service_with`](crate::Edge::service_with) uses its own quotas instead.
        pub quotas: Vec<QuotaConfig> = Vec::new(),
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

impl EndpointConfig {
    /// Accepts any host name if none is listed and `address` is beyond loopback.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> Self {
        if self.allowed_hosts.is_empty() && !address.ip().is_loopback() {
            self.allowed_hosts.push("*".to_owned());
        }
        self
    }
}

impl EdgeConfig {
    /// Returns the defaults for a listener on `address`.
    pub fn for_address(address: SocketAddr) -> Self {
        Self {
            endpoint: EndpointConfig::default().at(address),
            ..Self::default()
        }
    }
}
