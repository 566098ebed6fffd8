use std::sync::Arc;
use std::time::Duration;

use shoal_ports::settings;

settings! {
    /// Limits of a [`WorkerRuntime`](crate::WorkerRuntime).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PoolConfig {
        /// The worker's pool.
        pub pool: Arc<str> = Arc::default(),
        /// Maximum concurrent calls.
        pub concurrency: usize = 128,
        /// Maximum concurrent calls of each principal; 0 is unlimited.
        pub concurrency_per_principal: usize = 0,
        /// Maximum calls that wait to run, or to begin in the backend. The worker refuses further calls.
        pub queue: usize = 1024,
        /// Maximum calls that wait for clients' answers. They do not count for `concurrency`. The worker
        /// refuses the questions of further calls.
        pub asking: usize = 1024,
        /// Maximum calls of each principal that wait for clients' answers.
        pub asking_per_principal: usize = 256,
        /// Maximum time in the queue. Then the worker drops the call, because its client has probably given up. The
        /// worker refuses at once a call whose expected wait is above three quarters of this time.
        pub queue_age: Duration = Duration::from_secs(5),
        /// How long the worker keeps a finished call's events for readers.
        pub result_retention: Duration = Duration::from_secs(60),
        /// Maximum finished calls kept.
        pub retained_results: usize = 10_000,
        /// Maximum bytes of finished calls kept.
        pub retained_bytes: usize = 64 * 1024 * 1024,
        /// How long the worker remembers a journaled call's id, so that the call does not run twice; at least
        /// ten times `result_retention`.
        pub call_memory: Duration = Duration::from_secs(60 * 60),
        /// Maximum ids of journaled and refused calls that the worker remembers.
        ///
        /// The worker refuses a journaled call bound to it before the oldest remembered id. This limits the
        /// time from binding to start: with 1000 journaled calls a second, 100 000 ids allow 100 seconds.
        pub remembered_calls: usize = 100_000,
        /// How long the worker waits for a call that it told to stop, before it drops the call.
        pub cancel_grace: Duration = Duration::from_secs(5),
        /// How long a call without a session runs without a reader. Set it longer than an edge needs to reconnect over
        /// another link.
        pub deserted_after: Duration = Duration::from_secs(10),
    }
}

impl PoolConfig {
    /// Creates a pool's default limits.
    pub fn new(pool: impl Into<Arc<str>>) -> Self {
        Self {
            pool: pool.into(),
            ..Self::default()
        }
    }
}
