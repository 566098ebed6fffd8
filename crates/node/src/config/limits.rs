//! `[limits]`: how much of everything there may be before the answer is "later".

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_edge::Limits as EdgeLimits;
use shoal_session::SessionConfig;

/// How much of everything there may be before the answer is "later".
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Limits {
    /// Connections open at once; more wait in the operating system's queue. Fewer, with a warning, where the process may
    /// not open that many files besides those that it keeps for itself.
    pub connections: usize,
    /// Requests open at once on one HTTP/2 connection.
    pub requests_per_connection: u32,
    /// Requests under way at once on this node, streamed answers included.
    pub requests: usize,
    /// The same for one principal. Without authentication everybody is one principal, and this does not count.
    pub requests_per_principal: usize,
    /// Headers of one request.
    pub headers: usize,
    /// Bytes of the headers of one request.
    pub header_bytes: usize,
    /// Bytes of one message from a client.
    pub body_bytes: usize,
    /// Bytes of all messages over 16 KiB from clients that this node holds at once, each until it is answered; beyond it
    /// they wait for a moment and are then refused. At least `body_bytes`.
    pub bodies_in_flight_bytes: usize,
    /// The same for one principal. Without authentication everybody is one principal, and this does not count.
    pub bodies_in_flight_bytes_per_principal: usize,
    /// Bytes of all answers over 16 KiB, and events of streams over 16 KiB, that wait on this node for their clients to read
    /// them. Beyond it, those that have stood still for a second are given up, the longest first; where none has, the new
    /// answer is not kept, and its client is told.
    pub answers_waiting_bytes: usize,
    /// The same for one principal. Without authentication everybody is one principal, and this does not count.
    pub answers_waiting_bytes_per_principal: usize,
    /// Levels of nesting in one message from a client.
    pub nesting: usize,
    /// Streams that clients hold open on this node: GET, HTTP+SSE, `subscriptions/listen`.
    pub streams: usize,
    /// The same for one principal. Without authentication everybody is one principal, and this does not
    /// count.
    pub streams_per_principal: usize,
    /// Resources of one `subscriptions/listen`.
    pub resources_per_listener: usize,
    /// Changed resources that may wait for one `subscriptions/listen` client before it is cut.
    pub updates_per_listener: usize,
    /// Legacy sessions on this node, live and passivated.
    pub sessions_per_node: usize,
    /// Legacy sessions of one principal on this node. Without authentication everybody is one principal, and this does
    /// not count.
    pub sessions_per_principal: usize,
    /// Requests of one session that may be in flight at once.
    pub calls_per_session: usize,
    /// Messages that may wait for one session.
    pub messages_per_session: usize,
    /// Resources that one session may be subscribed to.
    pub subscriptions_per_session: usize,
    /// Bytes of the URIs that one session may be subscribed to.
    pub subscription_bytes_per_session: usize,
    /// Bytes that all legacy sessions of this node may have stored: their records, the events that can be resumed, and the
    /// calls in the journal. Beyond it nothing new is begun; calls that run can end.
    pub stored_bytes: u64,
    /// The same for one principal on this node. Without authentication everybody is one principal, and this does not count.
    pub stored_bytes_per_principal: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let edge = EdgeLimits::default();
        let session = SessionConfig::default();
        Self {
            connections: 100_000,
            requests_per_connection: 256,
            requests: edge.requests_in_flight,
            requests_per_principal: edge.requests_per_principal,
            headers: edge.header_count,
            header_bytes: edge.header_bytes,
            body_bytes: edge.body_bytes,
            bodies_in_flight_bytes: edge.bodies_in_flight_bytes,
            bodies_in_flight_bytes_per_principal: edge.bodies_in_flight_bytes_per_principal,
            answers_waiting_bytes: edge.answers_waiting_bytes,
            answers_waiting_bytes_per_principal: edge.answers_waiting_bytes_per_principal,
            nesting: edge.nesting,
            streams: edge.streams,
            streams_per_principal: edge.streams_per_principal,
            resources_per_listener: edge.uris_per_listener,
            updates_per_listener: edge.updates_per_listener,
            sessions_per_node: session.sessions_per_node,
            sessions_per_principal: session.sessions_per_principal,
            calls_per_session: session.calls_per_session,
            messages_per_session: session.mailbox,
            subscriptions_per_session: session.subscriptions_per_session,
            subscription_bytes_per_session: session.subscription_bytes_per_session,
            stored_bytes: session.stored_bytes,
            stored_bytes_per_principal: session.stored_bytes_per_principal,
        }
    }
}
