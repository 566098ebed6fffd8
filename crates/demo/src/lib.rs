//! Demo and conformance pools, written as rmcp server handlers.
//!
//! Both handlers know nothing about Shoal: they are what a tool author writes, and any rmcp
//! transport can serve them (`examples/serve.rs` does). One clone serves every caller, so whatever
//! they remember is shared behind an [`Arc`](std::sync::Arc), and no [`Peer`](rmcp::Peer) outlives
//! the request it came with.

mod ask;
mod conformance;
mod demo;
mod log;
mod media;
#[cfg(test)]
mod tests;

pub use conformance::ConformanceServer;
pub use demo::DemoServer;
