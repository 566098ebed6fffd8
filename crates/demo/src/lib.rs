//! Demo and conformance pools, as rmcp server handlers that are independent of Shoal (`examples/serve.rs`
//! serves them).
//!
//! One clone serves every caller, so state is shared behind an [`Arc`](std::sync::Arc), and a
//! [`Peer`](rmcp::Peer) lives no longer than its request.

mod ask;
mod conformance;
mod demo;
mod log;
mod media;
#[cfg(test)]
mod tests;

pub use conformance::ConformanceServer;
pub use demo::DemoServer;
