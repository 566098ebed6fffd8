//! Why a check did not pass.

use std::fmt::Display;

/// Why a check did not pass.
#[derive(Debug)]
pub(super) enum CheckFailure {
    /// The worker does something else than it should.
    Failed {
        /// What the contract asks for.
        expected: String,
        /// What the worker did.
        seen: String,
    },
    /// It does not apply to this worker.
    Skipped(String),
}

/// What comes of a check, or of a part of one.
pub(super) type Checked<T = ()> = Result<T, CheckFailure>;

/// The worker does something else than it should.
pub(super) fn failed<T>(expected: impl Display, seen: impl Display) -> Checked<T> {
    Err(CheckFailure::Failed {
        expected: expected.to_string(),
        seen: seen.to_string(),
    })
}

/// Holds the worker to something.
pub(super) fn expect(holds: bool, expected: impl Display, seen: impl Display) -> Checked {
    match holds {
        true => Ok(()),
        false => failed(expected, seen),
    }
}
