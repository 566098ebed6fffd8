//! Telemetry of real requests, in its own program because it is set up once per process.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]
#![allow(dead_code, reason = "the fakes are shared with the edge's other tests")]

mod collector;
#[path = "../edge/dispatcher.rs"]
mod dispatcher;
#[path = "../edge/gateway.rs"]
mod gateway;
#[path = "../edge/server.rs"]
mod server;
#[path = "../edge/sse.rs"]
mod sse;

mod http;
mod operations;
mod page;
mod spans;
mod streams;
