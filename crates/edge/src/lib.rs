//! HTTP in, SSE out: serves MCP clients of both eras at one URL.
//!
//! | file | content |
//! |---|---|
//! | [`Edge`] (`edge.rs`) | the parts of an edge and its service |
//! | `layers.rs` | the layers in front of every endpoint: headers, host and origin, authentication, limits |
//! | `upgrade.rs` | connections that continue in another protocol |
//! | `connection.rs`, `writing.rs` | the connection of a request |
//! | `state.rs`, `visit.rs`, `permit.rs` | shared state of the endpoints, a request's facts, and a POST's resources |
//! | `header_check.rs` | ambiguous headers |
//! | `transport.rs`, `endpoint.rs` | the interface and list of client transports |
//! | `streamable.rs`, `era.rs` | Streamable HTTP, and the era of a posted message |
//! | `incoming.rs` | a message from its bytes to its answer, for every transport |
//! | `modern.rs`, `modern/` | 2026-07-28: calls, `server/discover`, `subscriptions/listen` |
//! | `subscriptions.rs`, `subscriptions/` | listeners and their news |
//! | `legacy.rs`, `legacy/` | sessions over Streamable HTTP, and HTTP+SSE of 2024-11-05 |
//! | `websocket.rs`, `websocket/`, `metered.rs` | sessions over WebSocket, and room for messages of unknown length |
//! | `recorder.rs`, `recorder/` | outcomes and durations of requests; spans and metrics of messages |
//! | `authorize.rs`, `resource.rs` | authentication and grants; the protected resource's public document |
//! | `measure.rs`, `gauges.rs` | metrics and traces of HTTP and of the edge's load |
//! | `sse.rs` | event streams that are written only as fast as they are read |
//! | `load.rs`, `body_budget.rs`, `backlog.rs` | limits on requests, large bodies and unread answers |
//! | `single_streams.rs` | streams that a drain must not cut |
//! | `refusal.rs`, `refused.rs` | every refusal with its text, status and code (`docs/errors.md`) |
//!
//! The files form levels, each of which uses the levels after it: the service, the layers, the endpoints, their shared
//! parts.
//!
//! An edge keeps no state that a client would miss: sessions live behind
//! [`SessionGateway`](shoal_ports::SessionGateway), and calls behind
//! [`Dispatcher`](shoal_ports::Dispatcher).

mod answer;
mod audit;
mod authorize;
mod awaited_answers;
mod backlog;
mod body;
mod body_budget;
mod call_end;
mod config;
mod connection;
mod cors;
mod cut_off;
mod edge;
mod elsewhere;
mod endpoint;
mod era;
mod extension;
mod gauges;
mod header_check;
mod held_places;
mod hosts;
mod incoming;
mod layers;
mod legacy;
mod load;
mod measure;
mod media;
mod metered;
mod modern;
mod names;
mod origin_check;
mod permit;
mod places;
mod quotas;
mod recorder;
mod refusal;
mod refused;
mod resource;
mod single_streams;
mod sse;
mod state;
mod streamable;
mod subscriptions;
mod tasks;
mod transport;
mod trusted_proxies;
mod upgrade;
mod visit;
mod websocket;
mod writing;

pub use config::{EdgeConfig, EndpointConfig};
pub use connection::{Connection, Peer};
pub use edge::{Edge, EdgeService};
pub use header_check::ambiguity;
pub use hosts::{Hosts, Welcome};
pub use layers::Trusted;
pub use legacy::http_sse::HTTP_SSE_PATHS;
pub use load::Load;
pub use quotas::Quotas;
pub use recorder::{Gauges, Recorder};
pub use single_streams::SingleStreams;
pub use trusted_proxies::TrustedProxies;
pub use upgrade::{Duplex, Upgrade};
pub use writing::Writing;
