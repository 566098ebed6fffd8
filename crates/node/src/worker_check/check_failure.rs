//! Why a check did not pass.

use std::fmt::Display;

#[derive(Debug)]
pub(super) enum CheckFailure {
    /// The worker violated the contract.
    Failed {
        /// The requirement of the contract.
        expected: String,
        /// The worker's behaviour.
        seen: String,
    },
    /// The check does not apply to this worker.
    Skipped(String),
}

/// The result of a check or of its part.
pub(super) type Checked<T = ()> = Result<T, CheckFailure>;

/// Fails the check.
pub(super) fn failed<T>(expected: impl Display, seen: impl Display) -> Checked<T> {
    Err(CheckFailure::Failed {
        expected: expected.to_string(),
        seen: seen.to_string(),
    })
}

/// Fails the check unless a condition holds.
pub(super) fn expect(holds: bool, expected: impl Display, seen: impl Display) -> Checked {
    match holds {
        true => Ok(()),
        false => failed(expected, seen),
    }
}
