//! `[limits]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings;

settings! {
    /// How much of everything there may be before the answer is "later".
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Limits")]
    pub struct NodeLimits {
        /// Connections open at once; more wait in the operating system's queue. If the process may not open that many
        /// files, the limit is lower, and the log has a warning.
        pub connections: usize = 100_000,
        /// Requests open at once on one HTTP/2 connection.
        pub requests_per_connection: u32 = 256,
        /// Requests under way at once on this node, streamed answers included.
        pub requests: usize = 16_384,
        /// The same for one principal. Without authentication everybody is one principal, and this does not count.
        pub requests_per_principal: usize = 4_096,
        /// Header fields of one request.
        pub headers: usize = 500,
        /// Bytes of the headers of one request.
        pub header_bytes: usize = 32 << 10,
        /// Bytes of one message from a client.
        pub body_bytes: usize = 4 << 20,
        /// Bytes of all client messages over 16 KiB that this node holds at once. Each counts until it is answered.
        /// Beyond the limit a message waits for a moment, then it is refused. At least `body_bytes`.
        pub bodies_in_flight_bytes: usize = 64 << 20,
        /// The same for one principal. Without authentication everybody is one principal, and this does not count.
        pub bodies_in_flight_bytes_per_principal: usize = 16 << 20,
        /// Bytes of all answers over 16 KiB, and events of streams over 16 KiB, that wait on this node for their
        /// clients to read them. Beyond the limit, Shoal drops those that no client has read from for a second, the
        /// oldest first. If there are none, it does not keep the new answer, and tells its client.
        pub answers_waiting_bytes: usize = 256 << 20,
        /// The same for one principal. Without authentication everybody is one principal, and this does not count.
        pub answers_waiting_bytes_per_principal: usize = 64 << 20,
        /// Levels of nesting in one message from a client.
        pub nesting: usize = 64,
        /// Streams that clients hold open on this node: GET, HTTP+SSE, WebSocket, `subscriptions/listen`.
        pub streams: usize = 65_536,
        /// The same for one principal. Without authentication everybody is one principal, and this does not
        /// count.
        pub streams_per_principal: usize = 1_024,
        /// Resources of one `subscriptions/listen`, and likewise tasks (`taskIds`).
        pub resources_per_listener: usize = 256,
        /// Changed resources that may wait for one `subscriptions/listen` client before it is cut.
        pub updates_per_listener: usize = 64,
        /// Legacy sessions on this node, live and passivated.
        pub sessions_per_node: usize = 100_000,
        /// Legacy sessions of one principal on this node. Without authentication everybody is one principal, and this does
        /// not count.
        pub sessions_per_principal: usize = 10_000,
        /// Requests of one session that may be in flight at once.
        pub calls_per_session: usize = 64,
        /// Changes of one session (its log level, subscriptions, batches) that may wait for those before them.
        pub messages_per_session: usize = 256,
        /// Resources that one session may be subscribed to.
        pub subscriptions_per_session: usize = 1_000,
        /// Bytes of the URIs that one session may be subscribed to.
        pub subscription_bytes_per_session: usize = 256 * 1024,
        /// Bytes that all sessions and tasks of this node may have stored: their records, the events that can be resumed,
        /// the calls in the journal, and the results of tasks. Beyond it Shoal starts nothing new; running calls can end.
        pub stored_bytes: u64 = 4 << 30,
        /// The same for one principal on this node. Without authentication everybody is one principal, and this does not count.
        pub stored_bytes_per_principal: u64 = 256 << 20,
    }
}
