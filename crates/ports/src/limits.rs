//! `[limits]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings;

settings! {
    /// Limits of one node. Shoal refuses requests beyond them until there is room.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Limits")]
    pub struct NodeLimits {
        /// Maximum connections; more wait in the operating system. It is lower, with a warning, if the process may open
        /// fewer files.
        pub connections: usize = 100_000,
        /// Maximum requests of one HTTP/2 connection.
        pub requests_per_connection: u32 = 256,
        /// Maximum requests in progress, with streamed answers.
        pub requests: usize = 16_384,
        /// The same per principal.
        pub requests_per_principal: usize = 4_096,
        /// Maximum header fields of a request.
        pub headers: usize = 500,
        /// Maximum bytes of a request's headers.
        pub header_bytes: usize = 32 << 10,
        /// Maximum bytes of a client's message.
        pub body_bytes: usize = 4 << 20,
        /// Maximum bytes of unanswered client messages over 16 KiB, at least `body_bytes`. Beyond it, messages wait
        /// briefly, then are refused.
        pub bodies_in_flight_bytes: usize = 64 << 20,
        /// The same per principal.
        pub bodies_in_flight_bytes_per_principal: usize = 16 << 20,
        /// Maximum unread bytes of answers and events over 16 KiB. Beyond it, Shoal drops those stalled for a second,
        /// oldest first, else the new answer.
        pub answers_waiting_bytes: usize = 256 << 20,
        /// The same per principal.
        pub answers_waiting_bytes_per_principal: usize = 64 << 20,
        /// Maximum nesting of a client's message.
        pub nesting: usize = 64,
        /// Maximum streams: GET, HTTP+SSE, WebSocket, `subscriptions/listen`.
        pub streams: usize = 65_536,
        /// The same per principal.
        pub streams_per_principal: usize = 1_024,
        /// Maximum resources, or tasks, of a `subscriptions/listen`.
        pub resources_per_listener: usize = 256,
        /// Changed resources that may wait for a `subscriptions/listen` before Shoal ends it.
        pub updates_per_listener: usize = 64,
        /// Maximum legacy sessions, including passivated ones.
        pub sessions_per_node: usize = 100_000,
        /// The same per principal.
        pub sessions_per_principal: usize = 10_000,
        /// Maximum requests in flight per session.
        pub calls_per_session: usize = 64,
        /// Waiting changes of a session (log level, subscriptions, batches).
        pub messages_per_session: usize = 256,
        /// Maximum resource subscriptions per session.
        pub subscriptions_per_session: usize = 1_000,
        /// Maximum bytes of their URIs.
        pub subscription_bytes_per_session: usize = 256 * 1024,
        /// Maximum stored bytes of sessions and tasks: records, resumable events, journaled calls, results. Beyond it,
        /// only running calls continue.
        pub stored_bytes: u64 = 4 << 30,
        /// The same per principal.
        pub stored_bytes_per_principal: u64 = 256 << 20,
    }
}
