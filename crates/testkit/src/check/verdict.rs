use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Violation {
    /// An answer or an event is missing.
    Lost,
    /// An answer, an event or a question came twice.
    Duplicated,
    /// An event came before one that was sent earlier.
    OutOfOrder,
    /// An unsafe tool was executed twice.
    ExecutedTwice,
    /// A client had to open a new session.
    Forgotten,
    /// A client was not told that its session's data was lost.
    NotTold,
    /// An answer differs from the tool's, or belongs to another request.
    WrongAnswer,
    /// A finished stream differed when it was requested again.
    WrongReplay,
    /// The ledger contradicts an answer.
    WrongOutcome,
    /// An error that the run does not excuse.
    UnexpectedError,
    /// A member did not exit cleanly, or did not come back.
    Misbehaved,
    /// A process still holds something for clients.
    Held,
}

/// A violation with its details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The broken promise.
    pub violation: Violation,
    /// The client whose history shows it.
    pub client: Option<usize>,
    /// The violation in words.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}: ", self.violation)?;
        if let Some(client) = self.client {
            write!(out, "client {client}: ")?;
        }
        out.write_str(&self.detail)
    }
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Sessions opened.
    pub sessions: u64,
    /// Calls made.
    pub calls: u64,
    /// Requests sent.
    pub requests: u64,
    /// Calls that became tasks.
    pub tasks: u64,
    /// Calls answered with their result.
    pub results: u64,
    /// Calls answered with an error, by code.
    pub errors: BTreeMap<i64, u64>,
    /// Requests refused, by HTTP status.
    pub refused: BTreeMap<u16, u64>,
    /// Calls whose outcome was lost with their edge.
    pub lost_with_edge: u64,
    /// Calls whose session or stream history is gone.
    pub gone: u64,
    /// Calls that clients gave up before anything arrived.
    pub hung_up: u64,
    /// Events received.
    pub events: u64,
    /// Connections that broke before the answer.
    pub breaks: u64,
    /// Connections that clients left on purpose.
    pub left: u64,
    /// Streams resumed.
    pub resumes: u64,
    /// Finished streams requested again.
    pub replays: u64,
    /// Notifications on standalone streams.
    pub changes: u64,
    /// Reports to clients that their session is gone.
    pub forgotten: u64,
    /// Executions of tools that must not be repeated.
    pub executions: u64,
}

impl Counts {
    /// Counts the calls with a result or an error.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.results + self.errors.values().sum::<u64>()
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The totals.
    pub counts: Counts,
    /// The broken promises.
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

    /// Counts the findings of this kind.
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
