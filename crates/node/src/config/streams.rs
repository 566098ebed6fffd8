use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_edge::Timing;
use shoal_ports::memory::MemoryLimits;
use shoal_ports::settings;
use shoal_session::SessionConfig;

use super::Period;

settings! {
    /// SSE streams, and how long clients can resume them.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Streams {
        /// How often Shoal sends a comment on a silent stream. Stay below your load balancers' idle timeout.
        pub keep_alive: Period = Timing::default().keep_alive.into(),
        /// Minimum time before clients reconnect to a stream that Shoal closed.
        pub retry: Period = SessionConfig::default().retry.into(),
        /// Further time over which Shoal spreads listeners' reconnections.
        pub retry_spread: Period = Timing::default().reconnect_spread.into(),
        /// How long a call that is safe to repeat may be silent before its answer becomes a stream.
        pub grace: Period = SessionConfig::default().grace.into(),
        /// How long a call that must not run twice may be silent before Shoal journals it and streams its answer.
        pub hold: Period = SessionConfig::default().hold.into(),
        /// Maximum bytes of a held call's result. Shoal stores a larger one before it answers.
        pub hold_bytes: usize = SessionConfig::default().hold_bytes,
        /// Maximum events that wait for one connection.
        pub buffer: usize = SessionConfig::default().reader_buffer,
        /// How long a connection may accept no events before Shoal cuts it. The client can resume.
        pub stall: Period = SessionConfig::default().reader_stall.into(),
        /// Newest events of each stream in memory.
        pub tail_events: usize = SessionConfig::default().tail_events,
        /// Minimum time that clients can resume an ended stream, and a session's standalone (GET) stream.
        pub retention: Period = MemoryLimits::default().retention.into(),
        /// Maximum resumable events of a stream. Shoal drops the oldest.
        pub events_per_stream: usize = MemoryLimits::default().events_per_stream,
        /// Maximum bytes of a session's events.
        pub bytes_per_session: usize = MemoryLimits::default().bytes_per_session,
        /// Maximum bytes of events in the embedded store. For Redis, set `maxmemory` and `maxmemory-policy noeviction`.
        pub bytes: usize = MemoryLimits::default().bytes,
        /// How long events wait for an unreachable store before they are lost.
        pub store_patience: Period = SessionConfig::default().store_patience.into(),
    }
}
