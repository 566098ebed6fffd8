use shoal_ports::CallOutcome;

use super::bounds::code_text;
use crate::metrics::labels::{PROTOCOL_VERSION, TRANSPORT, labels};

labels! {
    /// The transport of the messages.
    Transport: TRANSPORT {
        /// HTTP/1.1 and HTTP/2.
        Tcp = "tcp",
        /// Stdio.
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
    /// A JSON-RPC error of this code.
    Code(i64),
    /// A tool's result that has `isError`.
    Tool,
    /// No answer, for a short reason such as `cancelled` or `connection_lost`.
    Other(&'static str),
}

impl Failure {
    /// Returns how the outcome failed, if it did. Searches a result for `isError`.
    #[must_use]
    pub fn of(outcome: &CallOutcome) -> Option<Self> {
        match outcome {
            CallOutcome::Result(_) => outcome.is_tool_error().then_some(Self::Tool),
            CallOutcome::Error(error) | CallOutcome::Refused(error) => Some(Self::Code(error.code)),
            CallOutcome::Failed(failure) => Some(Self::Other(failure.name())),
        }
    }

    /// Returns the value of `error.type`, for spans as well. Unknown codes are `_OTHER`.
    #[must_use]
    pub fn error_type(self) -> &'static str {
        match self {
            Self::Code(code) => code_text(code),
            Self::Tool => "tool_error",
            Self::Other(kind) => kind,
        }
    }
}

/// A request or notification that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The method.
    pub method: &'a str,
    /// The tool of `tools/call`.
    pub tool: Option<&'a str>,
    /// The prompt of `prompts/get`.
    pub prompt: Option<&'a str>,
    /// The failure, if any.
    pub failure: Option<Failure>,
    /// The protocol revision.
    pub revision: Option<&'a str>,
    /// The transport.
    pub transport: Transport,
    /// The HTTP version, if any.
    pub http: Option<HttpVersion>,
}

impl<'a> Operation<'a> {
    /// Creates a successful operation over HTTP/1.1.
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
