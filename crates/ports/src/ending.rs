//! How a call ended, as metrics and spans name it.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use shoal_protocol::RawJson;
use shoal_telemetry::metrics::{self, Failure};

use crate::{CallFailure, CallOutcome};

const IS_ERROR: &str = "isError";

impl CallOutcome {
    /// How the call failed; `None` when it did not. A result is searched for `isError`, so this is asked only where
    /// somebody wants to know.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Result(result) => is_tool_error(result).then_some(Failure::Tool),
            Self::Error(error) | Self::Refused(error) => Some(Failure::Code(error.code)),
            Self::Failed(failure) => Some(Failure::Other(failure.name())),
        }
    }

    /// How the call is counted. A result is searched as for [`failure`](Self::failure).
    #[must_use]
    pub fn counted(&self) -> metrics::CallOutcome {
        self.counted_with(self.failure())
    }

    /// Like [`counted`](Self::counted), where the [`failure`](Self::failure) is known already.
    #[must_use]
    pub fn counted_with(&self, failure: Option<Failure>) -> metrics::CallOutcome {
        match self {
            Self::Result(_) if failure.is_some() => metrics::CallOutcome::ToolError,
            Self::Result(result) if asks_for_input(result) => metrics::CallOutcome::Parked,
            Self::Result(_) => metrics::CallOutcome::Completed,
            Self::Failed(CallFailure::Cancelled) => metrics::CallOutcome::Cancelled,
            Self::Failed(CallFailure::DeadlineExceeded { .. }) => metrics::CallOutcome::Deadline,
            Self::Failed(CallFailure::OutcomeUnknown { .. }) => metrics::CallOutcome::Lost,
            Self::Error(_) | Self::Refused(_) | Self::Failed(_) => metrics::CallOutcome::Error,
        }
    }
}

impl CallFailure {
    /// A short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotExecuted { .. } => "not_executed",
            Self::NotReady { .. } => "not_ready",
            Self::Overloaded { .. } => "overloaded",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::DeadlineExceeded { .. } => "deadline_exceeded",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Whether a result of `tools/call` says that its tool failed (2025-11-25, Tools, Error Handling).
fn is_tool_error(result: &RawJson) -> bool {
    static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(IS_ERROR));
    has(&NAME, result, IS_ERROR, "true")
}

/// Whether a result is none yet: the client has to answer first (2026-07-28, Multi Round-Trip Requests).
fn asks_for_input(result: &RawJson) -> bool {
    static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("input_required"));
    has(&NAME, result, "resultType", "\"input_required\"")
}

/// Searching is much cheaper than taking apart, and nearly every result ends there.
fn has(found: &Finder<'_>, result: &RawJson, member: &str, value: &str) -> bool {
    found.find(result.as_bytes()).is_some()
        && (result.member(member)).is_some_and(|found| found.as_str() == value)
}

#[cfg(test)]
mod tests {
    use shoal_protocol::{RawJson, RpcError};
    use shoal_telemetry::metrics::{CallOutcome as Counted, Failure};

    use crate::{CallFailure, CallOutcome};

    fn result(text: &'static str) -> CallOutcome {
        CallOutcome::Result(RawJson::from_static(text))
    }

    #[test]
    fn failures_have_the_names_of_the_conventions() {
        for (outcome, failure) in [
            (result(r#"{"content":[]}"#), None),
            (result(r#"{"content":[],"isError":false}"#), None),
            (result(r#"{"content":[{"isError":true}]}"#), None),
            (result(r#"{"isError" : true}"#), Some("tool_error")),
            (
                CallOutcome::Error(RpcError::invalid_params("no")),
                Some("-32602"),
            ),
            (
                CallOutcome::Failed(CallFailure::Cancelled),
                Some("cancelled"),
            ),
        ] {
            let named = outcome.failure().map(Failure::error_type);
            assert_eq!(named, failure, "{outcome:?}");
        }
    }

    #[test]
    fn results_are_counted_by_what_they_say() {
        for (text, counted) in [
            (r#"{"content":[]}"#, Counted::Completed),
            (
                r#"{"content":[{"text":"isError true"}]}"#,
                Counted::Completed,
            ),
            (r#"{"isError":true}"#, Counted::ToolError),
            (r#"{"resultType":"complete"}"#, Counted::Completed),
            (r#"{"resultType":"input_required"}"#, Counted::Parked),
        ] {
            assert_eq!(result(text).counted(), counted, "{text}");
        }
    }
}
