//! The ways in which a server can break what a resuming client is promised.

use serde::Serialize;

/// What was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Violation {
    /// A progress notification never came.
    Lost,
    /// A progress notification came more than once.
    Duplicated,
    /// A message came before one that was sent earlier.
    OutOfOrder,
    /// A call was accepted and never answered.
    MissingAnswer,
    /// A call was answered more than once.
    ExtraAnswer,
    /// A call was answered with something else than its result.
    WrongAnswer,
    /// An event id came twice in one session.
    RepeatedId,
    /// A message came on a stream where it does not belong.
    Stray,
    /// A resume was refused although its history had to be there still.
    RefusedResume,
    /// A finished stream, asked for again, differed from what it was before.
    WrongReplay,
}

/// One violation, with what a person needs to look into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What was broken.
    pub(crate) violation: Violation,
    /// How, in words.
    pub(crate) detail: String,
}

impl Finding {
    /// A finding.
    pub(crate) fn new(violation: Violation, detail: impl Into<String>) -> Self {
        Self {
            violation,
            detail: detail.into(),
        }
    }
}
