//! `[calls]`: time limits and retries of calls.

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
        /// Maximum time of a call, with legacy clients' answers; then its tool must stop. [Tasks](tasks.md#limits)
        /// pause it while they ask.
        pub timeout: Period = SessionConfig::default().call_timeout.into(),
        /// Wait that Shoal tells callers without room.
        pub retry_after: Period = SessionConfig::default().retry_after.into(),
        /// Maximum workers to offer a call.
        pub attempts: usize = Dispatch::default().start_attempts,
        /// Failures in a row of a caller's calls of one tool that open the worker's circuit breaker for them; 0 is off.
        pub circuit_failures: u32 = Dispatch::default().circuit_failures,
        /// How long the breaker first stays open. Failed trials double it.
        pub circuit_open: Period = Dispatch::default().circuit_open.into(),
        /// Maximum time that it stays open.
        pub circuit_open_max: Period = Dispatch::default().circuit_open_max.into(),
        /// How long a call waits for a modern client's answers, and its `requestState` is valid.
        pub input_timeout: Period = Dispatch::default().parking_time.into(),
        /// Tolerated clock difference between nodes, for `requestState`.
        pub clock_skew: Period = Dispatch::default().clock_skew.into(),
        /// Maximum calls that wait for modern clients' answers.
        pub waiting: usize = Dispatch::default().max_parked,
        /// The same per principal.
        pub waiting_per_principal: usize = Dispatch::default().max_parked_per_principal,
        /// Maximum `InputRequiredResult`s in a row in a legacy call.
        pub input_rounds: u32 = Dispatch::default().max_rounds,
    }
}
