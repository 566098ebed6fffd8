use std::time::Duration;

use shoal_ports::{NodeLimits, SessionTransport, settings};

settings! {
    /// Limits and times of the sessions on one node.
    #[derive(Clone, Debug)]
    pub struct SessionConfig {
        /// Limits of the node. Sessions enforce the limits on sessions and stored bytes.
        pub limits: NodeLimits = NodeLimits::default(),
        /// How long the store keeps the events of a finished stream.
        pub retention: Duration = Duration::from_secs(60),
        /// Maximum bytes of one value that tools keep in a session.
        pub state_value_bytes: usize = 16 * 1024,
        /// Maximum bytes of all keys and values that tools keep in a session.
        pub state_bytes: usize = 64 * 1024,
        /// Maximum number of values that tools keep in a session; 0 turns them off.
        pub state_keys: usize = 64,
        /// How long an unused session lives.
        pub idle: Duration = Duration::from_secs(30 * 60),
        /// Offers tasks to sessions of 2025-11-25.
        pub tasks: bool = true,
        /// Minimum time to keep a task after its call, and after each request for the task.
        pub task_ttl: Duration = Duration::from_secs(60 * 60),
        /// How often clients should poll a task.
        pub task_poll_interval: Duration = Duration::from_secs(1),
        /// Maximum bytes of a task's result.
        pub task_result_bytes: usize = 4 * 1024 * 1024,
        /// How long a session without calls and streams stays in memory.
        pub passivate_after: Duration = Duration::from_secs(30),
        /// How often the node looks for idle sessions.
        pub sweep_every: Duration = Duration::from_secs(5),
        /// How long a request that is safe to repeat may take before its answer becomes a stream.
        pub grace: Duration = Duration::from_secs(1),
        /// How long a request that must not run twice may take before the session journals it and streams its answer.
        /// If 0, the session journals the request before it starts. A pool can override this setting. The hold needs a
        /// worker that the edge has bound.
        pub hold: Duration = Duration::from_millis(15),
        /// Maximum bytes of a held request's result. The session stores a larger result before it answers.
        pub hold_bytes: usize = 16 * 1024,
        /// Maximum time of a call.
        pub call_timeout: Duration = Duration::from_secs(300),
        /// Minimum time before clients reconnect to a stream that the node closed.
        pub retry: Duration = Duration::from_secs(1),
        /// Time over which the node spreads the reconnections of listeners, in addition to `retry`.
        pub retry_spread: Duration = Duration::from_secs(4),
        /// Newest events of each stream that the node keeps in memory, besides the log.
        pub tail_events: usize = 64,
        /// Maximum events that may wait for one connection, and that a call appends at once.
        pub reader_buffer: usize = 64,
        /// How long a connection may accept no events. Then the node closes the connection.
        pub reader_stall: Duration = Duration::from_secs(30),
        /// Maximum workers that the session offers a journaled call to.
        pub start_attempts: usize = 3,
        /// How long a request waits for an unreachable store before the node refuses the request.
        pub begin_patience: Duration = Duration::from_secs(1),
        /// How long events of a call wait for an unreachable store before they are lost.
        pub store_patience: Duration = Duration::from_secs(300),
        /// Waiting time that Shoal names to refused callers.
        pub retry_after: Duration = Duration::from_secs(1),
    }
}

impl SessionConfig {
    /// Longer than the session may be idle, by at least a few sweeps.
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
