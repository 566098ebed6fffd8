use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Period, settings};

settings! {
    /// SSE streams, and how long clients can resume them.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Streams")]
    pub struct StreamSettings {
        /// How often Shoal sends a comment on a silent stream. Stay below your load balancers' idle timeout.
        pub keep_alive: Period = Period::seconds(15),
        /// Minimum time before clients reconnect to a stream that Shoal closed.
        pub retry: Period = Period::seconds(1),
        /// Maximum random time that Shoal adds to `retry`.
        pub retry_spread: Period = Period::seconds(4),
        /// How long a modern call, or one that is safe to repeat, may be silent before its answer becomes a stream.
        pub grace: Period = Period::seconds(1),
        /// How long a legacy call that must not run twice may be silent before Shoal [journals](concepts/hold.md) it
        /// and streams its answer.
        pub hold: Period = Period::millis(15),
        /// Maximum bytes of a result within the hold. Shoal stores a larger result before it answers.
        pub hold_bytes: usize = 16 * 1024,
        /// Maximum events that wait for one connection.
        pub buffer: usize = 64,
        /// How long a connection may accept no events before Shoal cuts it.
        pub stall: Period = Period::seconds(30),
        /// Newest events of each stream that stay in memory.
        pub tail_events: usize = 64,
        /// Minimum time that clients can resume an ended stream, or get missed events of a session's standalone (GET)
        /// stream.
        pub retention: Period = Period::seconds(60),
        /// Maximum resumable events of a stream. Shoal drops the oldest.
        pub events_per_stream: usize = 10_000,
        /// Maximum bytes of a session's events.
        pub bytes_per_session: usize = 16 << 20,
        /// Maximum bytes of events in the store `"memory"`. For Redis, set `maxmemory` and `maxmemory-policy
        /// noeviction`.
        pub bytes: usize = 1 << 30,
        /// How long events wait for an unreachable store before they are lost.
        pub store_patience: Period = Period::seconds(300),
    }
}
