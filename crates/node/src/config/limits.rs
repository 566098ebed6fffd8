//! `[limits]`: how much of everything there may be before the answer is "later".

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_edge::Limits as EdgeLimits;
use shoal_ports::settings;
use shoal_session::SessionConfig;

settings! {
    /// How much of everything there may be before the answer is "later".
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Limits {
        /// Connections open at once; more wait in the operating system's queue. Fewer, with a warning, where the process may
        /// not open that many files besides those that it keeps for itself.
        pub connections: usize = 100_000,
        /// Requests open at once on one HTTP/2 connection.
        pub requests_per_connection: u32 = 256,
        /// Requests under way at once on this node, streamed answers included.
        pub requests: usize = EdgeLimits::default().requests_in_flight,
        /// The same for one principal. Without authentication everybody is one principal, and this does not count.
        pub requests_per_principal: usize = EdgeLimits::default().requests_per_principal,
        /// Headers of one request.
        pub headers: usize = EdgeLimits::default().header_count,
        /// Bytes of the headers of one request.
        pub header_bytes: usize = EdgeLimits::default().header_bytes,
        /// Bytes of one message from a client.
        pub body_bytes: usize = EdgeLimits::default().body_bytes,
        /// Bytes of all messages over 16 KiB from clients that this node holds at once, each until it is answered; beyond it
        /// they wait for a moment and are then refused. At least `body_bytes`.
        pub bodies_in_flight_bytes: usize = EdgeLimits::default().bodies_in_flight_bytes,
        /// The same for one principal. Without authentication everybody is one principal, and this does not count.
        pub bodies_in_flight_bytes_per_principal: usize = EdgeLimits::default().bodies_in_flight_bytes_per_principal,
        /// Bytes of all answers over 16 KiB, and events of streams over 16 KiB, that wait on this node for their clients to read
        /// them. Beyond it, those that have stood still for a second are given up, the longest first; where none has, the new
        /// answer is not kept, and its client is told.
        pub answers_waiting_bytes: usize = EdgeLimits::default().answers_waiting_bytes,
        /// The same for one principal. Without authentication everybody is one principal, and this does not count.
        pub answers_waiting_bytes_per_principal: usize = EdgeLimits::default().answers_waiting_bytes_per_principal,
        /// Levels of nesting in one message from a client.
        pub nesting: usize = EdgeLimits::default().nesting,
        /// Streams that clients hold open on this node: GET, HTTP+SSE, `subscriptions/listen`.
        pub streams: usize = EdgeLimits::default().streams,
        /// The same for one principal. Without authentication everybody is one principal, and this does not
        /// count.
        pub streams_per_principal: usize = EdgeLimits::default().streams_per_principal,
        /// Resources of one `subscriptions/listen`.
        pub resources_per_listener: usize = EdgeLimits::default().uris_per_listener,
        /// Changed resources that may wait for one `subscriptions/listen` client before it is cut.
        pub updates_per_listener: usize = EdgeLimits::default().updates_per_listener,
        /// Legacy sessions on this node, live and passivated.
        pub sessions_per_node: usize = SessionConfig::default().sessions_per_node,
        /// Legacy sessions of one principal on this node. Without authentication everybody is one principal, and this does
        /// not count.
        pub sessions_per_principal: usize = SessionConfig::default().sessions_per_principal,
        /// Requests of one session that may be in flight at once.
        pub calls_per_session: usize = SessionConfig::default().calls_per_session,
        /// Changes of one session (its log level, subscriptions, batches) that may wait for those before them.
        pub messages_per_session: usize = SessionConfig::default().mailbox,
        /// Resources that one session may be subscribed to.
        pub subscriptions_per_session: usize = SessionConfig::default().subscriptions_per_session,
        /// Bytes of the URIs that one session may be subscribed to.
        pub subscription_bytes_per_session: usize = SessionConfig::default().subscription_bytes_per_session,
        /// Bytes that all legacy sessions of this node may have stored: their records, the events that can be resumed, and the
        /// calls in the journal. Beyond it nothing new is begun; calls that run can end.
        pub stored_bytes: u64 = SessionConfig::default().stored_bytes,
        /// The same for one principal on this node. Without authentication everybody is one principal, and this does not count.
        pub stored_bytes_per_principal: u64 = SessionConfig::default().stored_bytes_per_principal,
    }
}
