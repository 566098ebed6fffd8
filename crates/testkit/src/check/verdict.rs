//! What a check found.

use std::collections::BTreeMap;

use serde::Serialize;

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Violation {
    /// A call was never answered, or an event never came.
    Lost,
    /// An answer, an event or a question came twice.
    Duplicated,
    /// An event came before one that was sent earlier.
    OutOfOrder,
    /// A tool that must not be repeated was executed twice.
    ExecutedTwice,
    /// A client had to open a new session.
    Forgotten,
    /// A session whose data was lost was never told so.
    NotTold,
    /// An answer is not what the tool says, or belongs to another request.
    WrongAnswer,
    /// An answer says that nothing was executed, and it was; or the other way round.
    WrongOutcome,
    /// An error that nothing in the run excuses.
    UnexpectedError,
    /// A member of the cluster did not do as it was told: it did not end in order, or not come back.
    Misbehaved,
    /// When nobody asks for anything any more, something is still held for a request.
    Held,
}

/// A violation, with what a person needs to look into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was broken.
    pub violation: Violation,
    /// Whose history shows it.
    pub client: Option<usize>,
    /// How, in words.
    pub detail: String,
}

/// What happened, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Sessions opened.
    pub sessions: u64,
    /// Calls that clients wanted made.
    pub calls: u64,
    /// Requests sent for them.
    pub requests: u64,
    /// Calls that became tasks.
    pub tasks: u64,
    /// Calls answered with their result.
    pub results: u64,
    /// Calls answered with an error, by code.
    pub errors: BTreeMap<i64, u64>,
    /// Requests refused, by HTTP status.
    pub refused: BTreeMap<u16, u64>,
    /// Calls whose outcome was lost with the edge that had them, before there was a way back.
    pub lost_with_edge: u64,
    /// Calls whose clients were told that their session or the history of their stream is gone.
    pub gone: u64,
    /// Calls that their clients gave up before anything had come.
    pub hung_up: u64,
    /// Events received.
    pub events: u64,
    /// Connections that ended before the answer, not by the client's will.
    pub breaks: u64,
    /// Connections that clients left on purpose.
    pub left: u64,
    /// Streams resumed.
    pub resumes: u64,
    /// Times that a client was told that its session is gone.
    pub forgotten: u64,
    /// Executions of tools that must not be repeated.
    pub executions: u64,
}

impl Counts {
    /// Calls that were answered, whatever the answer said.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.results + self.errors.values().sum::<u64>()
    }
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What happened.
    pub counts: Counts,
    /// What was broken.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Adds a finding.
    pub fn find(&mut self, client: Option<usize>, violation: Violation, detail: impl Into<String>) {
        self.findings.push(Finding {
            violation,
            client,
            detail: detail.into(),
        });
    }

    /// How often a promise was broken.
    #[must_use]
    pub fn count(&self, violation: Violation) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.violation == violation)
            .count()
    }

    /// Whether every promise was kept.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
