//! HTTP in, SSE out: the node's face towards MCP clients of both eras at one URL.
//!
//! | file | what it holds |
//! |---|---|
//! | [`Edge`] (`edge.rs`) | the parts of an edge, and the router over them |
//! | `front.rs` | what every request passes first: host, origin, limits, who is calling |
//! | `state.rs`, `visit.rs` | what the endpoints share, and what they know of a request |
//! | `header_check.rs` | headers that two readers could understand differently |
//! | `post.rs`, `era.rs` | a posted message, and which era it belongs to |
//! | `modern.rs`, `modern/` | 2026-07-28: calls, `server/discover`, `subscriptions/listen` |
//! | `subscriptions.rs`, `subscriptions/` | who listens to what |
//! | `legacy.rs`, `legacy/` | sessions over Streamable HTTP, and HTTP+SSE of 2024-11-05 |
//! | `recorder.rs`, `recorder/` | how requests end and how long they take, for operators; spans and durations of messages |
//! | `measure.rs` | what metrics and traces say of HTTP |
//! | `sse.rs` | event streams that are written only as fast as they are read |
//! | `body_budget.rs`, `backlog.rs` | what large requests, and answers that nobody reads, may hold |
//! | `refusal.rs` | every refusal with its status and code (`docs/errors.md`) |
//!
//! A file uses those below it: the router, what is in front of every endpoint, the endpoints, what they share.
//!
//! An edge keeps nothing that a client would miss: sessions live behind
//! [`SessionGateway`](shoal_ports::SessionGateway), calls behind [`Dispatcher`](shoal_ports::Dispatcher).

mod access;
mod answer;
mod authenticate;
mod backlog;
mod body;
mod body_budget;
mod config;
mod cors;
mod edge;
mod era;
mod front;
mod header_check;
mod legacy;
mod load;
mod measure;
mod media;
mod modern;
mod names;
mod post;
mod recorder;
mod refusal;
mod sse;
mod state;
mod subscriptions;
mod visit;
mod writing;

pub use authenticate::{InvalidToken, NoAuthentication, StaticToken, StaticTokens};
pub use config::{EdgeConfig, HttpSsePaths, Limits, Timing};
pub use edge::Edge;
pub use load::Load;
pub use recorder::{Gauges, Recorder};
pub use writing::Writing;
