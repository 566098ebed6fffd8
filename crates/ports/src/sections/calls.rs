use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Period, settings};

settings! {
    /// Time limits of calls, retries and circuit breakers.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Calls")]
    pub struct CallSettings {
        /// Maximum time of a call, including the wait for a legacy client's answers. After this time, Shoal tells the
        /// tool to stop. While a [task](tasks.md#limits) waits for answers, its time pauses.
        pub timeout: Period = Period::seconds(300),
        /// Waiting time that refused callers get (`Retry-After`).
        pub retry_after: Period = Period::seconds(1),
        /// Maximum workers that Shoal offers a call to.
        pub attempts: usize = 3,
        /// Failures in a row, of one caller's calls of one tool, after which a worker gets no more of these calls for a
        /// while (open circuit breaker); 0 is never.
        pub circuit_failures: u32 = 5,
        /// How long a circuit breaker stays open at first. Each failed trial call doubles this time.
        pub circuit_open: Period = Period::seconds(1),
        /// Maximum time that a circuit breaker stays open.
        pub circuit_open_max: Period = Period::seconds(30),
        /// How long a call waits for a modern client's answers, and how long its `requestState` is valid.
        pub input_timeout: Period = Period::seconds(600),
        /// Tolerated clock difference between nodes, for `requestState`.
        pub clock_skew: Period = Period::seconds(300),
        /// Maximum calls of one node that wait for modern clients' answers.
        pub waiting: usize = 10_000,
        /// For each principal: maximum calls that wait for modern clients' answers.
        pub waiting_per_principal: usize = 1_000,
        /// Maximum `InputRequiredResult`s in a row in one call of a legacy client.
        pub input_rounds: u32 = 16,
    }
}
