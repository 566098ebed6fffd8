//! `[streams]`: SSE streams, and how long they can be resumed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_edge::Timing;
use shoal_ports::memory::MemoryLimits;
use shoal_ports::settings;
use shoal_session::SessionConfig;

use super::Period;

settings! {
    /// SSE streams, and how long they can be resumed.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Streams {
        /// How often a silent stream gets a comment, so that no proxy closes it as idle. Set it shorter than the idle
        /// timeout of every load balancer in front.
        pub keep_alive: Period = Timing::default().keep_alive.into(),
        /// How long clients wait, at least, before they come back after Shoal has closed their stream. If the connection
        /// breaks, clients wait for as long as they decide themselves.
        pub retry: Period = SessionConfig::default().retry.into(),
        /// The time over which clients that come back to listen are spread. If their node shuts down in order, clients
        /// with a running call come back within `retry`.
        pub retry_spread: Period = Timing::default().reconnect_spread.into(),
        /// How long a call that is safe to repeat may be silent before its answer becomes a stream.
        pub grace: Period = SessionConfig::default().grace.into(),
        /// How long a call that must not run twice may be silent before it is journaled and its answer becomes a stream. Until then
        /// nothing of it is stored. `0s`: it is journaled before it starts.
        pub hold: Period = SessionConfig::default().hold.into(),
        /// Bytes of such a call's result. Shoal stores a larger one before it answers.
        pub hold_bytes: usize = SessionConfig::default().hold_bytes,
        /// Events that may wait for one connection.
        pub buffer: usize = SessionConfig::default().reader_buffer,
        /// How long a connection may accept no event. Then Shoal closes it, and the client can resume.
        pub stall: Period = SessionConfig::default().reader_stall.into(),
        /// Events of a stream that are kept in memory for its reader, besides the log.
        pub tail_events: usize = SessionConfig::default().tail_events,
        /// How long, at least, a finished stream can be resumed, and an event of the standalone stream can be read again.
        pub retention: Period = MemoryLimits::default().retention.into(),
        /// Events of one stream that can be resumed; the oldest go first.
        pub events_per_stream: usize = MemoryLimits::default().events_per_stream,
        /// Bytes of events that one session may keep.
        pub bytes_per_session: usize = MemoryLimits::default().bytes_per_session,
        /// Bytes of events that all sessions together may keep in the embedded store. Redis has its own limit,
        /// `maxmemory` (with `maxmemory-policy noeviction`).
        pub bytes: usize = MemoryLimits::default().bytes,
        /// How long the events of a call wait while the store cannot be reached. After that they are lost.
        pub store_patience: Period = SessionConfig::default().store_patience.into(),
    }
}
