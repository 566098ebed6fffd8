use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Period, settings};

settings! {
    /// Settings of a [`WorkerRuntime`](crate::WorkerRuntime): the worker's part of `[pools.<name>]`.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default)]
    pub struct PoolConfig {
        /// The worker's pool.
        #[serde(skip)]
        pub pool: Arc<str> = Arc::default(),
        /// Maximum concurrent calls of each worker.
        pub concurrency: usize = 128,
        /// Maximum concurrent calls of one principal at each worker; 0 is unlimited.
        pub concurrency_per_principal: usize = 0,
        /// Maximum calls that wait at each worker. Principals take turns. If the queue is full, Shoal refuses the
        /// newest call of the principal with the most waiting calls.
        pub queue: usize = 1024,
        /// Maximum calls that wait for clients' answers, at each worker. Stdio
        /// [processes](stdio-servers.md#how-many-processes) limit them too.
        pub asking: usize = 1024,
        /// For each principal: maximum calls that wait for clients' answers.
        pub asking_per_principal: usize = 256,
        /// How long a call may wait in the queue, or for a server that is away. A call that waits for
        /// a free stdio process waits until its deadline instead. If a call would probably wait too long in the queue,
        /// Shoal refuses it at once.
        pub queue_age: Period = Period::seconds(5),
        /// How long a tool may continue after Shoal told it to stop.
        pub cancel_grace: Period = Period::seconds(5),
        /// How long workers remember the ids of journaled calls, so that no call runs twice.
        // At least ten times `result_retention`.
        pub call_memory: Period = Period::seconds(60 * 60),
        /// Maximum remembered ids of a worker.
        // The worker refuses a journaled call bound to it before the oldest remembered id. This limits the time from
        // binding to start: with 1000 journaled calls a second, 100 000 ids allow 100 seconds.
        pub remembered_calls: usize = 100_000,
        /// How long a worker keeps a journaled call's result, in case the session moves.
        pub result_retention: Period = Period::seconds(60),
        /// Maximum kept results of a worker.
        pub retained_results: usize = 10_000,
        /// Maximum bytes of a worker's kept results.
        pub retained_bytes: usize = 64 * 1024 * 1024,
        /// How long a call without a session runs without a reader. Set it longer than an edge needs to reconnect over
        /// another link.
        #[serde(skip)]
        pub deserted_after: Duration = Duration::from_secs(10),
    }
}

impl PoolConfig {
    /// Creates a pool's default settings.
    pub fn new(pool: impl Into<Arc<str>>) -> Self {
        Self {
            pool: pool.into(),
            ..Self::default()
        }
    }
}
