use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_dispatch::Config as Dispatch;
use shoal_ports::settings;
use shoal_session::SessionConfig;

use super::Period;

settings! {
    /// Time limits of calls, retries and circuit breakers.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Calls {
        /// Maximum time of a call, including legacy clients' answers. Then the tool must stop. The time of a
        /// [task](tasks.md#limits) pauses while the task asks.
        pub timeout: Period = SessionConfig::default().call_timeout.into(),
        /// Waiting time that refused callers get.
        pub retry_after: Period = SessionConfig::default().retry_after.into(),
        /// Maximum workers that Shoal offers a call to.
        pub attempts: usize = Dispatch::default().start_attempts,
        /// Failures in a row of one caller's calls of one tool that open a worker's circuit breaker for both; 0 is
        /// never.
        pub circuit_failures: u32 = Dispatch::default().circuit_failures,
        /// How long a circuit breaker stays open at first. Each failed trial doubles this time.
        pub circuit_open: Period = Dispatch::default().circuit_open.into(),
        /// Maximum time that a circuit breaker stays open.
        pub circuit_open_max: Period = Dispatch::default().circuit_open_max.into(),
        /// How long a call waits for a modern client's answers, and its `requestState` is valid.
        pub input_timeout: Period = Dispatch::default().parking_time.into(),
        /// Tolerated clock difference between nodes, for `requestState`.
        pub clock_skew: Period = Dispatch::default().clock_skew.into(),
        /// Maximum calls that wait for modern clients' answers.
        pub waiting: usize = Dispatch::default().max_parked,
        /// For each principal: maximum calls that wait for modern clients' answers.
        pub waiting_per_principal: usize = Dispatch::default().max_parked_per_principal,
        /// Maximum `InputRequiredResult`s in a row in one call of a legacy client.
        pub input_rounds: u32 = Dispatch::default().max_rounds,
    }
}
