//! What a call's end says, without taking it apart.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::{CallFailure, CallOutcome};

impl CallOutcome {
    /// Whether it is a result of `tools/call` that says that its tool failed (2025-11-25, Tools, Error Handling). A result
    /// is searched, so this is asked only where somebody wants to know.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"isError\""));
        self.has(&NAME, "true")
    }

    /// Whether it is a result that is none yet: the client has to answer first (2026-07-28, Multi Round-Trip Requests).
    #[must_use]
    pub fn asks_for_input(&self) -> bool {
        static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"resultType\""));
        self.has(&NAME, "\"input_required\"")
    }

    /// Whether a result has a member of this value. `name` finds its name with the quotation marks.
    ///
    /// Searching is much cheaper than taking apart, and nearly every result ends there: what no object within it has, it has not
    /// itself.
    fn has(&self, name: &Finder<'_>, value: &str) -> bool {
        let Self::Result(result) = self else {
            return false;
        };
        let text = result.as_bytes();
        let quoted = name.needle();
        let mut found = name.find_iter(text).map(|at| &text[at + quoted.len()..]);
        let has = found.any(|rest| {
            let rest = rest.trim_ascii_start().strip_prefix(b":");
            rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(value.as_bytes()))
        });
        let member = || str::from_utf8(quoted).unwrap_or_default().trim_matches('"');
        has && (result.member(member())).is_some_and(|found| found.as_str() == value)
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
