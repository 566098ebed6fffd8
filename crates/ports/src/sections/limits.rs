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
        /// Maximum connections. Further connections wait in the operating system. If the process may open fewer files,
        /// Shoal lowers the limit.
        pub connections: usize = 100_000,
        /// Maximum concurrent requests of an HTTP/2 connection.
        pub requests_per_connection: u32 = 256,
        /// Maximum requests in progress, including open answer streams.
        pub requests: usize = 16_384,
        /// For each principal: maximum requests in progress.
        pub requests_per_principal: usize = 4_096,
        /// Maximum header fields of a request.
        pub headers: usize = 500,
        /// Maximum bytes of a request's headers.
        pub header_bytes: usize = 32 << 10,
        /// Maximum bytes of a client's message.
        pub body_bytes: usize = 4 << 20,
        /// Maximum bytes of unanswered client messages over 16 KiB each; at least `body_bytes`. At the limit, a message
        /// first waits up to 2 s.
        pub bodies_in_flight_bytes: usize = 64 << 20,
        /// For each principal: maximum total bytes of unanswered client messages over 16 KiB.
        pub bodies_in_flight_bytes_per_principal: usize = 16 << 20,
        /// Maximum unread bytes of answers and events over 16 KiB each. At the limit, Shoal drops stalled answers of
        /// the same principal, or else the new answer.
        pub answers_waiting_bytes: usize = 256 << 20,
        /// For each principal: maximum unread bytes of answers and events over 16 KiB.
        pub answers_waiting_bytes_per_principal: usize = 64 << 20,
        /// Maximum nesting of a client's message.
        pub nesting: usize = 64,
        /// Maximum open streams: GET, HTTP+SSE, WebSocket, `subscriptions/listen`.
        pub streams: usize = 65_536,
        /// For each principal: maximum open streams.
        pub streams_per_principal: usize = 1_024,
        /// Maximum resources, or tasks, of one `subscriptions/listen`.
        pub resources_per_listener: usize = 256,
        /// Maximum changed resources that wait for one `subscriptions/listen`. With more, Shoal ends the stream.
        pub updates_per_listener: usize = 64,
        /// Maximum legacy sessions and tasks, including those only in the store.
        pub sessions_per_node: usize = 100_000,
        /// For each principal: maximum legacy sessions and tasks.
        pub sessions_per_principal: usize = 10_000,
        /// Maximum requests in flight of a session.
        pub calls_per_session: usize = 64,
        /// Maximum waiting messages of a session that change its log level or subscriptions, or are batches.
        pub messages_per_session: usize = 256,
        /// Maximum resource subscriptions of a session.
        pub subscriptions_per_session: usize = 1_000,
        /// Maximum bytes of a session's subscribed URIs.
        pub subscription_bytes_per_session: usize = 256 * 1024,
        /// Maximum stored bytes of sessions and tasks, with resumable events, journaled calls and results. At the
        /// limit, only running calls continue.
        pub stored_bytes: u64 = 4 << 30,
        /// For each principal: maximum stored bytes of sessions and tasks.
        pub stored_bytes_per_principal: u64 = 256 << 20,
    }
}
