//! The session role's limits and times.

use std::time::Duration;

use shoal_ports::{NodeLimits, SessionTransport, settings};

settings! {
    /// Limits and times of the sessions on one node.
    #[derive(Clone, Debug)]
    pub struct SessionConfig {
        /// How much there may be of everything on this node. Those of requests are for others.
        pub limits: NodeLimits = NodeLimits::default(),
        /// How long the store keeps the events of a finished stream.
        pub retention: Duration = Duration::from_secs(60),
        /// Bytes of one value that tools keep in a session.
        pub state_value_bytes: usize = 16 * 1024,
        /// Bytes of all that tools keep in one session, keys and values.
        pub state_bytes: usize = 64 * 1024,
        /// Values that tools keep in one session.
        pub state_keys: usize = 64,
        /// How long a session lives without being used.
        pub idle: Duration = Duration::from_secs(30 * 60),
        /// Whether sessions of 2025-11-25 are offered tasks.
        pub tasks: bool = true,
        /// How long a task is kept after its call has ended and nobody has asked for it.
        pub task_ttl: Duration = Duration::from_secs(60 * 60),
        /// How often clients are told to ask for a task.
        pub task_poll_interval: Duration = Duration::from_secs(1),
        /// Bytes of the largest result of a task.
        pub task_result_bytes: usize = 4 * 1024 * 1024,
        /// How long a session without calls and streams stays in memory.
        pub passivate_after: Duration = Duration::from_secs(30),
        /// How often idle sessions are looked for.
        pub sweep_every: Duration = Duration::from_secs(5),
        /// How long a request that is safe to repeat may take before its answer becomes a stream.
        pub grace: Duration = Duration::from_secs(1),
        /// How long one that must not run twice may take before it is journaled and its answer becomes a stream, where its
        /// edge has bound it and its pool says nothing else. Zero: it is journaled before it starts.
        pub hold: Duration = Duration::from_millis(15),
        /// Bytes of the largest result of such a request that is answered without a stream.
        pub hold_bytes: usize = 16 * 1024,
        /// How long a call may take in all.
        pub call_timeout: Duration = Duration::from_secs(300),
        /// When clients come back after a node has closed their stream, at the earliest.
        pub retry: Duration = Duration::from_secs(1),
        /// Over how much time the clients are spread that come back to listen.
        pub retry_spread: Duration = Duration::from_secs(4),
        /// Events of a stream that are kept at hand for its reader, besides the log.
        pub tail_events: usize = 64,
        /// Events that may wait for one connection; each counts, also of those that were appended together, which
        /// are at most so many.
        pub reader_buffer: usize = 64,
        /// How long a connection may refuse to take an event before it is cut.
        pub reader_stall: Duration = Duration::from_secs(30),
        /// Workers that a journaled call is offered to, at most.
        pub start_attempts: usize = 3,
        /// How long a request waits for a store that cannot be reached before it is refused.
        pub begin_patience: Duration = Duration::from_secs(1),
        /// How long what a call sends is kept for a store that cannot be reached.
        pub store_patience: Duration = Duration::from_secs(300),
        /// Waiting time that Shoal names to refused callers.
        pub retry_after: Duration = Duration::from_secs(1),
    }
}

impl SessionConfig {
    /// Returns how long the store keeps a session's record: longer than the idle limit plus a few sweeps.
    pub(crate) fn record_life(&self, transport: SessionTransport) -> Duration {
        (self.idle_of(transport) * 2).max(self.sweep_every * 4)
    }

    pub(crate) fn idle_of(&self, transport: SessionTransport) -> Duration {
        match transport {
            SessionTransport::Task => self.task_ttl,
            SessionTransport::Streamable | SessionTransport::SingleStream => self.idle,
        }
    }
}
