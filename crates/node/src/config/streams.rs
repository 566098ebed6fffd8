//! `[streams]`: SSE streams, and how long they can be resumed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_edge::Timing;
use shoal_ports::memory::MemoryLimits;
use shoal_session::SessionConfig;

use super::Period;

/// SSE streams, and how long they can be resumed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Streams {
    /// How often a silent stream gets a comment, so that nobody on the way takes it for dead. Shorter
    /// than the idle time of every balancer in front.
    pub keep_alive: Period,
    /// When clients come back after a broken stream, at the earliest. Those with a call under way are spread over as much
    /// time again.
    pub retry: Period,
    /// Over how much time clients are spread that come back to listen. Those with a call under way come back within `retry`
    /// when their node ends in order.
    pub retry_spread: Period,
    /// How long a call that is safe to repeat may be silent before its answer becomes a stream.
    pub grace: Period,
    /// Events that may wait for one connection.
    pub buffer: usize,
    /// How long a connection may refuse to take an event before it is cut; the client resumes.
    pub stall: Period,
    /// Events of a stream kept at hand for its reader, besides the log.
    pub tail_events: usize,
    /// How long, at least, a finished stream can be resumed, and an event of the standalone stream can be read again.
    pub retention: Period,
    /// Events of one stream that can be resumed; the oldest go first.
    pub events_per_stream: usize,
    /// Bytes of events that one session may keep.
    pub bytes_per_session: usize,
    /// Bytes of events that all sessions together may keep in the embedded store. Redis has its own limit,
    /// `maxmemory` (with `maxmemory-policy noeviction`).
    pub bytes: usize,
    /// How long what a call sends waits for a store that cannot be reached; after that it is lost.
    pub store_patience: Period,
}

impl Default for Streams {
    fn default() -> Self {
        let edge = Timing::default();
        let session = SessionConfig::default();
        let memory = MemoryLimits::default();
        Self {
            keep_alive: edge.keep_alive.into(),
            retry: session.retry.into(),
            retry_spread: edge.reconnect_spread.into(),
            grace: session.grace.into(),
            buffer: session.reader_buffer,
            stall: session.reader_stall.into(),
            tail_events: session.tail_events,
            retention: memory.retention.into(),
            events_per_stream: memory.events_per_stream,
            bytes_per_session: memory.bytes_per_session,
            bytes: memory.bytes,
            store_patience: session.store_patience.into(),
        }
    }
}
