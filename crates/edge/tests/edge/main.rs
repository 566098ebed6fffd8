//! An edge over real sockets, with fakes for its ports.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

mod crowded;
mod dispatcher;
mod drain;
mod gateway;
mod grants;
mod held_places;
mod http_sse;
mod legacy;
mod legacy_tasks;
mod lengths;
mod listen;
mod listeners;
mod modern;
mod raw;
mod recorded;
mod refusals;
mod server;
mod slow_reader;
mod sse;
mod tasks;
mod websocket;
mod welcome;
