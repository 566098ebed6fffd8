use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::{CallFailure, CallOutcome};

impl CallOutcome {
    /// Whether the result of `tools/call` reports a tool's failure (2025-11-25, Tools, Error
    /// Handling). Searches the unparsed text.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"isError\""));
        self.has(&NAME, "true")
    }

    /// Whether the result asks the client for input (2026-07-28, Multi Round-Trip Requests).
    #[must_use]
    pub fn asks_for_input(&self) -> bool {
        static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"resultType\""));
        self.has(&NAME, "\"input_required\"")
    }

    /// Searches first, which is much cheaper than parsing.
    fn has(&self, name: &Finder<'_>, value: &str) -> bool {
        let Self::Result(result) = self else {
            return false;
        };
        let quoted = name.needle();
        // An iterator would cost more than most searches.
        let mut rest = result.as_bytes();
        let has = loop {
            let Some(at) = name.find(rest) else {
                break false;
            };
            rest = &rest[at + quoted.len()..];
            let given = rest.trim_ascii_start().strip_prefix(b":");
            let is = |given: &[u8]| given.trim_ascii_start().starts_with(value.as_bytes());
            if given.is_some_and(is) {
                break true;
            }
        };
        let member = || str::from_utf8(quoted).unwrap_or_default().trim_matches('"');
        has && (result.member(member())).is_some_and(|found| found.as_str() == value)
    }
}

impl CallFailure {
    /// Returns the short name for metrics.
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

#[cfg(test)]
mod tests {
    use shoal_protocol::RawJson;

    use crate::CallOutcome;

    fn parsed(text: &str) -> (bool, bool) {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let is = |name: &str, wanted: serde_json::Value| value.get(name) == Some(&wanted);
        (
            is("isError", true.into()),
            is("resultType", "input_required".into()),
        )
    }

    #[test]
    fn results_say_what_their_members_say() {
        let members = [
            r#""isError":true"#,
            r#""isError" : true"#,
            r#""isError":false"#,
            r#""isError":"true""#,
            r#""resultType":"input_required""#,
            r#""resultType" : "input_required""#,
            r#""resultType":"complete""#,
            r#""content":[]"#,
            r#""x":"isError""#,
            r#""x":["isError",true,"resultType","input_required"]"#,
            r#""x":{"isError":true,"resultType":"input_required"}"#,
            r#""x":"\"isError\":true,\"resultType\":\"input_required\"""#,
        ];
        let mut texts = vec!["{}".to_owned(), "[\"isError\",true]".to_owned()];
        for first in members {
            texts.push(format!("{{{first}}}"));
            let others = members.iter().filter(|other| other[..4] != first[..4]);
            texts.extend(others.map(|other| format!("{{{first}, {other}}}")));
        }
        for length in 0..70 {
            for last in [r#""isError":true"#, r#""isError":null"#, r#""x":1"#] {
                texts.push(format!(r#"{{"text":"{}",{last}}}"#, "x".repeat(length)));
            }
        }
        for text in texts {
            let outcome = CallOutcome::Result(RawJson::from_valid(text.clone().into()));
            let said = (outcome.is_tool_error(), outcome.asks_for_input());
            assert_eq!(said, parsed(&text), "{text}");
        }
    }
}
