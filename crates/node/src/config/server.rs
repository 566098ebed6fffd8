//! `[server]`: where clients and operators connect.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_auth::TokenHash;
use shoal_edge::Timing;
use shoal_ports::settings;

use super::{Period, PortTls, SecretSource, listen_address};

settings! {
    /// Where clients and operators connect.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Server {
        /// Address and port that serve MCP, such as `0.0.0.0:8080`. `localhost:8080`, `:8080` and `8080` are on loopback. Port
        /// 0 takes a free one, which the first line of output names.
        #[schemars(with = "String", extend("format" = listen_address::FORMAT))]
        #[serde(deserialize_with = "listen_address::read")]
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// Address and port for operators: `/livez`, `/readyz`, `/status`, and the console at `/console/`. Only
        /// the console ever asks for credentials, so let no client reach it.
        #[schemars(with = "String", extend("format" = listen_address::FORMAT))]
        #[serde(deserialize_with = "listen_address::read")]
        pub admin: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8081)),
        /// Path of the MCP endpoint.
        pub path: String = "/mcp".to_owned(),
        /// Serves the HTTP+SSE transport of 2024-11-05 as well, on `/sse` and `/messages`.
        pub http_sse: bool = true,
        /// Answers every POST with JSON and never with a stream, for clients that ask for streams and cannot read them, such as
        /// Copilot Studio. The progress, the log messages and the questions of a call are left out.
        pub json_response: bool = false,
        /// Serves sessions over WebSocket as well, at the path of the MCP endpoint, after the community's draft SEP-1288.
        pub websocket: bool = false,
        /// What a proxy in front strips from the path; clients of HTTP+SSE are told it.
        pub public_base: String = String::new(),
        /// Names by which clients may reach the server, as in the `Host` header, with or without port
        /// (`"mcp.example.com"`); `"*"` is any. Loopback names always pass. If the list is empty and the server
        /// listens on more than loopback, every name passes.
        pub allowed_hosts: Vec<String> = Vec::new(),
        /// Web pages that may call the server, as in the `Origin` header (`"https://app.example.com"`);
        /// `"*"` is any. Requests without `Origin`, which only a browser sends, always pass.
        pub allowed_origins: Vec<String> = Vec::new(),
        /// Proxies in front, by address or network (`"10.0.0.0/8"`), whose `X-Forwarded-For` says where a client is. Quotas of
        /// addresses need them. Whoever can connect from there can name any address.
        pub trusted_proxies: Vec<String> = Vec::new(),
        /// Names by which operators may reach the admin port, as in the `Host` header, besides loopback ones; `"*"` is
        /// any. If the admin port listens on more than loopback, IP addresses pass too: a web page cannot make a
        /// browser send an address in place of a name that the page controls.
        pub admin_hosts: Vec<String> = Vec::new(),
        /// The token that the console asks for, at least 16 bytes: `{ file = "/run/secrets/admin-token" }` or `{ value
        /// = "…" }`. Without a token the console is open only if the admin port listens on loopback and `admin_hosts`
        /// is empty.
        pub admin_token: Option<SecretSource> = None,
        /// Operators who have a token each: `[{ name = "ada", sha256 = "…", role = "viewer" }]`. Logs and the audit trail name them.
        /// With operators, too, the console asks for a token.
        pub operators: Vec<Operator> = Vec::new(),
        /// Lets operators call tools from the console. The principal of these calls is `shoal-console`, and its limits
        /// apply. If clients need a token, this also needs `operators` or `admin_token`.
        pub console_calls: bool = true,
        /// How long a connection may take to send the headers of a request, from the first byte. A new connection must send
        /// the first byte within this time.
        pub header_timeout: Period = Period::seconds(75),
        /// How long a connection of HTTP/1.1 may idle between two requests. Set it longer than the load balancer in front
        /// keeps unused connections. Otherwise the balancer sends requests on connections that Shoal is closing, and they
        /// are lost.
        pub idle_timeout: Period = Period::seconds(620),
        /// How long the body of a request may take to arrive.
        pub body_timeout: Period = Timing::default().body.into(),
        /// How long a client may read nothing while data waits for it. Then Shoal closes its connection (over HTTP/2,
        /// resets its stream) and drops the data. A resumable stream goes on when the client comes back.
        pub write_timeout: Period = Period::seconds(30),
        /// TLS for clients.
        pub tls: PortTls = PortTls::default(),
        /// TLS for operators.
        pub admin_tls: PortTls = PortTls::default(),
    }
}

/// Somebody who may use the console.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name, sha256 and role")]
pub struct Operator {
    /// What logs and the audit trail call them.
    pub name: String,
    /// SHA-256 of their token, in hexadecimal; `shoal config hash-token` prints it.
    pub sha256: TokenHash,
    /// What they may do.
    pub role: OperatorRole,
}

/// What an operator may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OperatorRole {
    /// See everything that the console shows.
    Viewer,
    /// End sessions, cancel and make calls as well.
    Operator,
}
