use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Violation {
    Lost,
    Duplicated,
    OutOfOrder,
    MissingAnswer,
    ExtraAnswer,
    WrongAnswer,
    /// An event ID came twice in one session.
    RepeatedId,
    /// A message came on the wrong stream.
    Stray,
    /// A resume was refused although the history must still exist.
    RefusedResume,
    /// A finished stream differed when it was requested again.
    WrongReplay,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) violation: Violation,
    pub(crate) detail: String,
}

impl Finding {
    pub(crate) fn new(violation: Violation, detail: impl Into<String>) -> Self {
        Self {
            violation,
            detail: detail.into(),
        }
    }
}
