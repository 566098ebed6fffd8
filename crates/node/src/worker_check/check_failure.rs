use std::fmt::Display;

#[derive(Debug)]
pub(super) enum CheckFailure {
    /// The worker violated the contract.
    Failed {
        /// The contract's requirement.
        expected: String,
        /// The worker's behaviour.
        seen: String,
    },
    Skipped(String),
}

pub(super) type CheckResult<T = ()> = Result<T, CheckFailure>;

pub(super) fn failed<T>(expected: impl Display, seen: impl Display) -> CheckResult<T> {
    Err(CheckFailure::Failed {
        expected: expected.to_string(),
        seen: seen.to_string(),
    })
}

pub(super) fn expect(holds: bool, expected: impl Display, seen: impl Display) -> CheckResult {
    match holds {
        true => Ok(()),
        false => failed(expected, seen),
    }
}
