//! `[calls]`: how long calls may take, and how they are tried.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_dispatch::Config as Dispatch;
use shoal_session::SessionConfig;

use super::Period;

/// How long calls may take, and how they are tried.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Calls {
    /// How long a call may run before its tool is told to stop, a legacy client's answers included.
    pub timeout: Period,
    /// What callers who are refused for lack of room are told to wait.
    pub retry_after: Period,
    /// How many workers a call is offered to before it fails.
    pub attempts: usize,
    /// Failures in a row of one worker (a broken connection, an unknown outcome) after which it is left alone
    /// for a while; 0 means never.
    pub circuit_failures: u32,
    /// How long a worker is left alone the first time; twice as long after each failed trial.
    pub circuit_open: Period,
    /// How long a worker is left alone at most.
    pub circuit_open_max: Period,
    /// How long a call waits for a modern client's answers; as long is its `requestState` valid.
    pub input_timeout: Period,
    /// By how much the clocks of two nodes may differ without a `requestState` that one of them sealed expiring too early at
    /// the other.
    pub clock_skew: Period,
    /// Calls that may wait for modern clients' answers on this node.
    pub waiting: usize,
    /// The same for one principal.
    pub waiting_per_principal: usize,
    /// How often a backend may ask for input, one `InputRequiredResult` after the other, within one call
    /// of a legacy client.
    pub input_rounds: u32,
}

impl Default for Calls {
    fn default() -> Self {
        let session = SessionConfig::default();
        let dispatch = Dispatch::default();
        Self {
            timeout: session.call_timeout.into(),
            retry_after: session.retry_after.into(),
            attempts: dispatch.start_attempts,
            circuit_failures: dispatch.circuit_failures,
            circuit_open: Duration::from_millis(dispatch.circuit_open_ms).into(),
            circuit_open_max: Duration::from_millis(dispatch.circuit_open_max_ms).into(),
            input_timeout: Duration::from_secs(dispatch.parking_time_secs).into(),
            clock_skew: Duration::from_secs(dispatch.clock_skew_secs).into(),
            waiting: dispatch.max_parked,
            waiting_per_principal: dispatch.max_parked_per_principal,
            input_rounds: dispatch.max_rounds,
        }
    }
}
