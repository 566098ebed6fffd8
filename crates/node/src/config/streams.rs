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
        /// How often Shoal sends a comment on a silent stream. Set it shorter than your load balancers' idle timeout.
        pub keep_alive: Period = Timing::default().keep_alive.into(),
        /// Minimum time before clients reconnect to a stream that Shoal closed.
        pub retry: Period = SessionConfig::default().retry.into(),
        /// Time over which Shoal spreads the reconnections of listeners, in addition to `retry`.
        pub retry_spread: Period = Timing::default().reconnect_spread.into(),
        /// How long a call that is safe to repeat may be silent before its answer becomes a stream.
        pub grace: Period = SessionConfig::default().grace.into(),
        /// How long a call that must not run twice may be silent before Shoal journals it and streams its answer.
        pub hold: Period = SessionConfig::default().hold.into(),
        /// Maximum bytes of a held call's result. Shoal stores a larger result before it answers.
        pub hold_bytes: usize = SessionConfig::default().hold_bytes,
        /// Maximum events that may wait for one connection.
        pub buffer: usize = SessionConfig::default().reader_buffer,
        /// How long a connection may accept no events. Then Shoal cuts it, and the client can resume.
        pub stall: Period = SessionConfig::default().reader_stall.into(),
        /// Newest events of each stream that Shoal keeps in memory.
        pub tail_events: usize = SessionConfig::default().tail_events,
        /// How long Shoal keeps at least the events of a stream that has ended, and of a session's standalone (GET) stream,
        /// so that clients can resume.
        pub retention: Period = MemoryLimits::default().retention.into(),
        /// Maximum resumable events of a stream. Beyond it, Shoal drops the oldest events.
        pub events_per_stream: usize = MemoryLimits::default().events_per_stream,
        /// Maximum bytes of the events of one session.
        pub bytes_per_session: usize = MemoryLimits::default().bytes_per_session,
        /// Maximum bytes of events in the embedded store. For Redis, set `maxmemory` and `maxmemory-policy noeviction`.
        pub bytes: usize = MemoryLimits::default().bytes,
        /// How long events wait for an unreachable store before they are lost.
        pub store_patience: Period = SessionConfig::default().store_patience.into(),
    }
}
