use std::time::Duration;

use shoal_ports::{
    CallSettings, NodeLimits, SessionSettings, SessionTransport, StreamSettings, TaskSettings,
    settings,
};

settings! {
    /// Limits and times of the sessions on one node.
    #[derive(Clone, Debug)]
    pub struct SessionConfig {
        /// Limits of the node. Sessions enforce the limits on sessions and stored bytes.
        pub limits: NodeLimits = NodeLimits::default(),
        /// The life of a session, and values that tools keep in it.
        pub session: SessionSettings = SessionSettings::default(),
        /// Streams. A pool can override `hold`, which needs a worker that the edge has bound.
        pub streams: StreamSettings = StreamSettings::default(),
        /// Calls.
        pub calls: CallSettings = CallSettings::default(),
        /// Tasks.
        pub tasks: TaskSettings = TaskSettings::default(),
        /// How long a request waits for an unreachable store before the node refuses the request.
        pub begin_patience: Duration = Duration::from_secs(1),
    }
}

impl SessionConfig {
    /// Longer than the session may be idle, by at least a few sweeps.
    pub(crate) fn record_life(&self, transport: SessionTransport) -> Duration {
        (self.idle_of(transport) * 2).max(self.session.sweep_every.get() * 4)
    }

    pub(crate) fn idle_of(&self, transport: SessionTransport) -> Duration {
        match transport {
            SessionTransport::Task => self.tasks.ttl.get(),
            SessionTransport::Streamable | SessionTransport::SingleStream => {
                self.session.idle.get()
            }
        }
    }
}
