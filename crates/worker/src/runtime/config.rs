//! The limits of one worker pool in one process.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::settings;

settings! {
    /// How much a [`WorkerRuntime`](crate::WorkerRuntime) takes on and how long it keeps what it has done.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PoolConfig {
        /// The pool that the worker belongs to.
        pub pool: Arc<str> = Arc::default(),
        /// Calls that run at once.
        pub concurrency: usize = 128,
        /// Calls of one principal that run at once; 0 means as many as there are places.
        pub concurrency_per_principal: usize = 0,
        /// Calls that may wait for a place, or in their backend for what they need to begin; more are refused.
        pub queue: usize = 1024,
        /// Calls that may wait for answers of their clients. They have no place meanwhile. The questions of more are refused.
        pub asking: usize = 1024,
        /// The same for one principal.
        pub asking_per_principal: usize = 256,
        /// How long a call may wait. One that waited longer is shed: its client has probably given up, and
        /// running it would only delay the next. One that would wait longer than three quarters of this, at the pace of
        /// those before it, is refused when it comes.
        pub queue_age: Duration = Duration::from_secs(5),
        /// How long the events of a finished call can still be attached to.
        pub result_retention: Duration = Duration::from_secs(60),
        /// How many finished calls are kept at most.
        pub retained_results: usize = 10_000,
        /// How many bytes of finished calls are kept at most.
        pub retained_bytes: usize = 64 * 1024 * 1024,
        /// How long the id of a journaled call that has run is remembered after its result is gone, so that it
        /// is never run again; at least ten times `result_retention`.
        pub call_memory: Duration = Duration::from_secs(60 * 60),
        /// How many such ids, and those of refused calls, are remembered at most. A journaled call that was bound to the
        /// worker before the oldest of them was entered is not run, so this bounds how long one may be on its way: at 1000
        /// journaled calls a second, 100 000 are 100 seconds.
        pub remembered_calls: usize = 100_000,
        /// How long a call may go on after it was told to stop, before it is dropped.
        pub cancel_grace: Duration = Duration::from_secs(5),
        /// How long a call without a session goes on while nobody reads it. Longer than whoever began it takes to come back
        /// over another link.
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
