use std::time::Duration;

#[derive(Debug)]
pub(super) struct AttemptError {
    pub(super) why: String,
    pub(super) again: Retryable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retryable {
    Never,
    Soon,
    /// After this time, which the collector named.
    After(Duration),
}
