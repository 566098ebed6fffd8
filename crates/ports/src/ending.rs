//! What a call's end says, without taking it apart.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::{CallFailure, CallOutcome};

const IS_ERROR: &str = "isError";

impl CallOutcome {
    /// Whether it is a result of `tools/call` that says that its tool failed (2025-11-25, Tools, Error Handling). A result
    /// is searched, so this is asked only where somebody wants to know.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(IS_ERROR));
        self.has(&NAME, IS_ERROR, "true")
    }

    /// Whether it is a result that is none yet: the client has to answer first (2026-07-28, Multi Round-Trip Requests).
    #[must_use]
    pub fn asks_for_input(&self) -> bool {
        static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("input_required"));
        self.has(&NAME, "resultType", "\"input_required\"")
    }

    /// Searching is much cheaper than taking apart, and nearly every result ends there.
    fn has(&self, found: &Finder<'_>, member: &str, value: &str) -> bool {
        let Self::Result(result) = self else {
            return false;
        };
        found.find(result.as_bytes()).is_some()
            && (result.member(member)).is_some_and(|found| found.as_str() == value)
    }
}

impl CallFailure {
    /// A short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotExecuted { .. } | Self::WorkerAway { .. } => "not_executed",
            Self::NotReady { .. } => "not_ready",
            Self::Overloaded { .. } => "overloaded",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::DeadlineExceeded { .. } => "deadline_exceeded",
            Self::Cancelled => "cancelled",
            Self::Superseded { .. } => "superseded",
        }
    }
}
