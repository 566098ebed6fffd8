//! The session role's limits and times.

use std::time::Duration;

/// Limits and times of the sessions on one node.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Sessions that this node holds, live and passivated.
    pub sessions_per_node: usize,
    /// Sessions of one principal on this node; the anonymous principal is everybody and has no such bound.
    pub sessions_per_principal: usize,
    /// Requests of one session that may be in flight at once.
    pub calls_per_session: usize,
    /// Changes of one session (its log level, subscriptions, batches) that may wait to be carried out.
    pub mailbox: usize,
    /// Resources that one session may be subscribed to.
    pub subscriptions_per_session: usize,
    /// Bytes of the URIs that one session may be subscribed to.
    pub subscription_bytes_per_session: usize,
    /// Bytes that all sessions of this node may have stored before nothing new is: records, events in the log, journaled
    /// calls.
    pub stored_bytes: u64,
    /// The same for one principal; the anonymous principal is everybody and has no such bound.
    pub stored_bytes_per_principal: u64,
    /// How long the store keeps the events of a finished stream.
    pub retention: Duration,
    /// Bytes of one value that tools keep in a session.
    pub state_value_bytes: usize,
    /// Bytes of all that tools keep in one session, keys and values.
    pub state_bytes: usize,
    /// Values that tools keep in one session.
    pub state_keys: usize,
    /// How long a session lives without being used.
    pub idle: Duration,
    /// How long a session without calls and streams stays in memory.
    pub passivate_after: Duration,
    /// How often idle sessions are looked for.
    pub sweep_every: Duration,
    /// How long a request that is safe to repeat may take before its answer becomes a stream.
    pub grace: Duration,
    /// How long one that must not run twice may take before it is journaled and its answer becomes a stream, where its edge
    /// has bound it and its pool says nothing else. Zero: it is journaled before it starts.
    pub hold: Duration,
    /// Bytes of the largest result of such a request that is answered without a stream.
    pub hold_bytes: usize,
    /// How long a call may take in all.
    pub call_timeout: Duration,
    /// When clients come back after a broken stream, at the earliest.
    pub retry: Duration,
    /// Over how much time those are spread that come back to listen; those with a call under way over `retry` at most.
    pub retry_spread: Duration,
    /// Events of a stream that are kept at hand for its reader, besides the log.
    pub tail_events: usize,
    /// Events that may wait for one connection; each counts, also of those that were appended together, which
    /// are at most so many.
    pub reader_buffer: usize,
    /// How long a connection may refuse to take an event before it is cut.
    pub reader_stall: Duration,
    /// Workers that a journaled call is offered to, at most.
    pub start_attempts: usize,
    /// How long a request waits for a store that cannot be reached before it is refused.
    pub begin_patience: Duration,
    /// How long what a call sends is kept for a store that cannot be reached.
    pub store_patience: Duration,
    /// What refused callers are told to wait.
    pub retry_after: Duration,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            sessions_per_node: 100_000,
            sessions_per_principal: 10_000,
            calls_per_session: 64,
            mailbox: 256,
            subscriptions_per_session: 1_000,
            subscription_bytes_per_session: 256 * 1024,
            stored_bytes: 4 << 30,
            stored_bytes_per_principal: 256 << 20,
            retention: Duration::from_secs(60),
            state_value_bytes: 16 * 1024,
            state_bytes: 64 * 1024,
            state_keys: 64,
            idle: Duration::from_secs(30 * 60),
            passivate_after: Duration::from_secs(30),
            sweep_every: Duration::from_secs(5),
            grace: Duration::from_secs(1),
            hold: Duration::from_millis(15),
            hold_bytes: 16 * 1024,
            call_timeout: Duration::from_secs(300),
            retry: Duration::from_secs(1),
            retry_spread: Duration::from_secs(4),
            tail_events: 64,
            reader_buffer: 64,
            reader_stall: Duration::from_secs(30),
            start_attempts: 3,
            begin_patience: Duration::from_secs(1),
            store_patience: Duration::from_secs(300),
            retry_after: Duration::from_secs(1),
        }
    }
}

impl SessionConfig {
    /// How long the store keeps a record that nobody touches: longer than the session may idle, since
    /// the node touches records only now and then.
    pub(crate) fn record_life(&self) -> Duration {
        self.idle * 2
    }
}
