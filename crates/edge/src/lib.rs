//! HTTP in, SSE out: the node's face towards MCP clients of both eras at one URL.
//!
//! | file | what it holds |
//! |---|---|
//! | [`Edge`] (`edge.rs`) | the parts of an edge, and the service that they make |
//! | `layers.rs` | what every request passes first, in its order: headers, host and origin, who is calling, limits |
//! | `upgrade.rs` | a connection that goes on in another protocol |
//! | `connection.rs`, `writing.rs` | what is known of the connection that a request came on |
//! | `state.rs`, `visit.rs`, `permit.rs` | what the endpoints share, what they know of a request, and what a POST holds |
//! | `header_check.rs` | headers that two readers could understand differently |
//! | `transport.rs` | what a way by which clients reach the node has to be, and all of them |
//! | `streamable.rs`, `era.rs` | Streamable HTTP, and which era a posted message belongs to |
//! | `incoming.rs` | a message from its bytes to its answer, for every transport |
//! | `modern.rs`, `modern/` | 2026-07-28: calls, `server/discover`, `subscriptions/listen` |
//! | `subscriptions.rs`, `subscriptions/` | who listens to what |
//! | `legacy.rs`, `legacy/` | sessions over Streamable HTTP, and HTTP+SSE of 2024-11-05 |
//! | `websocket.rs`, `websocket/`, `metered.rs` | sessions over WebSocket, and the room for messages that nobody says the length of |
//! | `recorder.rs`, `recorder/` | how requests end and how long they take, for operators; spans and durations of messages |
//! | `authorize.rs`, `resource.rs` | what a request shows of its caller and whether that is enough; what anybody may read of that |
//! | `measure.rs`, `gauges.rs` | what metrics and traces say of HTTP, and of what the edge carries |
//! | `sse.rs` | event streams that are written only as fast as they are read |
//! | `load.rs`, `body_budget.rs`, `backlog.rs` | how many requests there may be, and what large ones, and answers that nobody reads, may hold |
//! | `single_streams.rs` | the streams that a drain must not cut |
//! | `refusal.rs`, `refused.rs` | every refusal with its text, status and code (`docs/errors.md`), and one on its way out |
//!
//! A file uses those below it: the service, what is in front of every endpoint, the endpoints, what they share.
//!
//! An edge keeps nothing that a client would miss: sessions live behind
//! [`SessionGateway`](shoal_ports::SessionGateway), calls behind [`Dispatcher`](shoal_ports::Dispatcher).

mod access;
mod answer;
mod audit;
mod authorize;
mod awaited_answers;
mod backlog;
mod body;
mod body_budget;
mod config;
mod connection;
mod cors;
mod cut_off;
mod edge;
mod elsewhere;
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
mod upgrade;
mod visit;
mod websocket;
mod writing;

pub use config::{EdgeConfig, HttpSsePaths, TaskSettings, Timing};
pub use connection::{Connection, Peer};
pub use edge::{Edge, EdgeService};
pub use header_check::ambiguity;
pub use hosts::{Hosts, Welcome};
pub use layers::Trusted;
pub use load::Load;
pub use quotas::{Quotas, TrustedProxies};
pub use recorder::{Gauges, Recorder};
pub use single_streams::SingleStreams;
pub use upgrade::{Duplex, Upgrade};
pub use writing::Writing;
