//! The limits of one worker pool in one process.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::settings;

settings! {
    /// Limits of a [`WorkerRuntime`](crate::WorkerRuntime): running calls, waiting calls and kept results.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PoolConfig {
        /// Name of the pool that the worker belongs to.
        pub pool: Arc<str> = Arc::default(),
        /// Maximum concurrent calls.
        pub concurrency: usize = 128,
        /// For each principal: maximum concurrent calls; 0 is unlimited.
        pub concurrency_per_principal: usize = 0,
        /// Maximum calls that wait to run, or that wait in the backend to begin. The worker refuses further calls.
        pub queue: usize = 1024,
        /// Maximum calls that wait for clients' answers. These calls do not count for `concurrency`. The worker refuses
        /// the questions of further calls.
        pub asking: usize = 1024,
        /// For each principal: maximum calls that wait for clients' answers.
        pub asking_per_principal: usize = 256,
        /// Maximum time in the queue. Then the worker drops the call, because its client has probably given up. The
        /// worker refuses at once a call whose expected wait is above three quarters of this time.
        pub queue_age: Duration = Duration::from_secs(5),
        /// How long the worker keeps the events of a finished call for readers that attach.
        pub result_retention: Duration = Duration::from_secs(60),
        /// Maximum finished calls that the worker keeps.
        pub retained_results: usize = 10_000,
        /// Maximum bytes of the finished calls that the worker keeps.
        pub retained_bytes: usize = 64 * 1024 * 1024,
        /// How long the worker remembers the id of a journaled call, so that the call does not run twice. The worker
        /// uses at least ten times `result_retention`.
        pub call_memory: Duration = Duration::from_secs(60 * 60),
        /// Maximum ids of journaled and refused calls that the worker remembers.
        ///
        /// The worker refuses a journaled call that was bound to it before the oldest remembered id. The setting
        /// therefore limits the time from binding to start: with 1000 journaled calls a second, 100 000 ids allow 100
        /// seconds.
        pub remembered_calls: usize = 100_000,
        /// How long a call may continue after the worker has told it to stop. Then the worker drops the call.
        pub cancel_grace: Duration = Duration::from_secs(5),
        /// How long a call without a session runs without a reader. Set it longer than an edge needs to reconnect over
        /// another link.
        pub deserted_after: Duration = Duration::from_secs(10),
    }
}

impl PoolConfig {
    /// Creates the default limits for this pool.
    pub fn new(pool: impl Into<Arc<str>>) -> Self {
        Self {
            pool: pool.into(),
            ..Self::default()
        }
    }
}
