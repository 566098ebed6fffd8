//! What there is to say about an operation.

use shoal_ports::CallOutcome;

use super::bounds::code_text;
use crate::metrics::labels::{PROTOCOL_VERSION, TRANSPORT, labels};

labels! {
    /// What carries the messages.
    Transport: TRANSPORT {
        /// HTTP/1.1 and HTTP/2.
        Tcp = "tcp",
        /// Standard input and output.
        Pipe = "pipe",
    }
}

labels! {
    /// The version of HTTP.
    HttpVersion: PROTOCOL_VERSION {
        /// HTTP/1.0.
        Http10 = "1.0",
        /// HTTP/1.1.
        Http11 = "1.1",
        /// HTTP/2.
        Http2 = "2",
    }
}

/// How an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The answer is a JSON-RPC error of this code.
    Code(i64),
    /// The answer is a tool's result with `isError`.
    Tool,
    /// There was no answer; a short name says why, such as `cancelled` or `connection_lost`.
    Other(&'static str),
}

impl Failure {
    /// How the call failed that ended so; `None` when it did not. A result is searched.
    #[must_use]
    pub fn of(outcome: &CallOutcome) -> Option<Self> {
        match outcome {
            CallOutcome::Result(_) => outcome.is_tool_error().then_some(Self::Tool),
            CallOutcome::Error(error) | CallOutcome::Refused(error) => Some(Self::Code(error.code)),
            CallOutcome::Failed(failure) => Some(Self::Other(failure.name())),
        }
    }

    /// The value of `error.type`, for spans as well: a code that is not known is `_OTHER`.
    #[must_use]
    pub fn error_type(self) -> &'static str {
        match self {
            Self::Code(code) => code_text(code),
            Self::Tool => "tool_error",
            Self::Other(kind) => kind,
        }
    }
}

/// A request or notification that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Its method.
    pub method: &'a str,
    /// The tool of `tools/call`.
    pub tool: Option<&'a str>,
    /// The prompt of `prompts/get`.
    pub prompt: Option<&'a str>,
    /// How it failed, if it did.
    pub failure: Option<Failure>,
    /// The protocol revision.
    pub revision: Option<&'a str>,
    /// What carried it.
    pub transport: Transport,
    /// The version of HTTP, if it was HTTP.
    pub http: Option<HttpVersion>,
}

impl<'a> Operation<'a> {
    /// A successful operation over HTTP/1.1, to change from there.
    #[must_use]
    pub const fn new(method: &'a str) -> Self {
        Self {
            method,
            tool: None,
            prompt: None,
            failure: None,
            revision: None,
            transport: Transport::Tcp,
            http: Some(HttpVersion::Http11),
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::{CallFailure, CallOutcome};
    use shoal_protocol::{RawJson, RpcError};

    use super::Failure;

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
            let named = Failure::of(&outcome).map(Failure::error_type);
            assert_eq!(named, failure, "{outcome:?}");
        }
    }
}
