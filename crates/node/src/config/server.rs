use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_auth::TokenHash;
use shoal_edge::EndpointConfig;
use shoal_ports::{listen_address, settings};

use super::{Period, PortTls, SecretSource};

settings! {
    /// Ports for clients and operators.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Server {
        /// Address and port for MCP clients. A port alone means loopback; 0 takes a free port, which Shoal prints.
        #[schemars(with = "String", extend("format" = listen_address::FORMAT))]
        #[serde(deserialize_with = "listen_address::read")]
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// Address and port for operators: health, `/status`, `/metrics`, console. Only the console asks for
        /// credentials, so keep clients away from this port.
        #[schemars(with = "String", extend("format" = listen_address::FORMAT))]
        #[serde(deserialize_with = "listen_address::read")]
        pub admin: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8081)),
        /// The MCP endpoint.
        #[serde(flatten)]
        pub endpoint: EndpointConfig = EndpointConfig::default(),
        /// Accepted `Host` names of operators, besides loopback names; `"*"` allows any. If `admin` is not on loopback,
        /// IP addresses pass too.
        pub admin_hosts: Vec<String> = Vec::new(),
        /// Console token, at least 16 bytes: `{ file = "…" }` or `{ value = "…" }`. To open the console beyond
        /// loopback, or with `admin_hosts`, set this or `operators`.
        pub admin_token: Option<SecretSource> = None,
        /// Operators with their own tokens.
        pub operators: Vec<Operator> = Vec::new(),
        /// Lets operators call tools in the console, as principal `shoal-console`. If clients need tokens, this needs
        /// `operators` or `admin_token`.
        pub console_calls: bool = true,
        /// Time limit for a connection's first byte, and for a request's headers.
        pub header_timeout: Period = Period::seconds(75),
        /// How long an HTTP/1.1 connection may be idle. Set it above your load balancer's idle timeout, or requests are
        /// lost.
        pub idle_timeout: Period = Period::seconds(620),
        /// How long clients may leave data unread before Shoal closes the connection (HTTP/2: the stream).
        pub write_timeout: Period = Period::seconds(30),
        /// TLS for clients ([TLS](tls.md)). With `certificate` and `key`, the port serves only TLS.
        pub tls: PortTls = PortTls::default(),
        /// TLS for operators, on the admin port.
        pub admin_tls: PortTls = PortTls::default(),
    }
}

/// A console operator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name, sha256 and role")]
pub struct Operator {
    /// Name in logs and audit events.
    pub name: String,
    /// Hexadecimal SHA-256 of the token, from `shoal config hash-token`.
    pub sha256: TokenHash,
    /// Permissions.
    pub role: OperatorRole,
}

/// The permissions of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OperatorRole {
    /// See everything.
    Viewer,
    /// Also end sessions, cancel calls and call tools.
    Operator,
}
