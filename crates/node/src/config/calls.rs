//! `[calls]`: how long calls may take, and how they are tried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_dispatch::Config as Dispatch;
use shoal_ports::settings;
use shoal_session::SessionConfig;

use super::Period;

settings! {
    /// How long calls may take, and how they are tried.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Calls {
        /// How long a call may run before its tool is told to stop, a legacy client's answers included. The time of a
        /// [task](tasks.md#limits) stops while a question of it is open.
        pub timeout: Period = SessionConfig::default().call_timeout.into(),
        /// What callers who are refused for lack of room are told to wait.
        pub retry_after: Period = SessionConfig::default().retry_after.into(),
        /// How many workers a call is offered to before it fails.
        pub attempts: usize = Dispatch::default().start_attempts,
        /// Failures in a row (a broken connection, an unknown outcome) of one caller's calls of one tool at one worker, after
        /// which the circuit breaker opens for them: that worker gets no such calls for a while. It still gets calls of other
        /// callers and tools. 0 means never. Calls that run at the same time and fail together are one failure.
        pub circuit_failures: u32 = Dispatch::default().circuit_failures,
        /// How long the circuit breaker stays open the first time. After each failed trial it stays open twice as
        /// long.
        pub circuit_open: Period = Dispatch::default().circuit_open.into(),
        /// How long the circuit breaker stays open at most.
        pub circuit_open_max: Period = Dispatch::default().circuit_open_max.into(),
        /// How long a call waits for a modern client's answers, as a task too. Its `requestState` is valid for the same time.
        pub input_timeout: Period = Dispatch::default().parking_time.into(),
        /// How much the clocks of two nodes may differ. Within that, a `requestState` that one node sealed does not
        /// expire too early at the other.
        pub clock_skew: Period = Dispatch::default().clock_skew.into(),
        /// Calls that may wait for modern clients' answers on this node.
        pub waiting: usize = Dispatch::default().max_parked,
        /// The same for one principal.
        pub waiting_per_principal: usize = Dispatch::default().max_parked_per_principal,
        /// How often a backend may ask for input, one `InputRequiredResult` after the other, within one call
        /// of a legacy client.
        pub input_rounds: u32 = Dispatch::default().max_rounds,
    }
}
