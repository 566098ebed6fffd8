//! Why an exchange with the server under test did not count as a good answer.

/// The closed set of ways in which an exchange fails.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    /// The connection could not be opened, broke, or stayed silent too long.
    #[error("transport: {0}")]
    Transport(String),
    /// The server refused at the HTTP level.
    #[error("HTTP status {status}: {body}")]
    Status {
        /// The HTTP status code.
        status: u16,
        /// `Retry-After`, in seconds, where the server sent one.
        retry_after_s: Option<u64>,
        /// The beginning of the body.
        body: String,
    },
    /// The server answered, and the answer is not the one that was due.
    #[error("wrong answer: {0}")]
    Wrong(String),
}

impl Failure {
    /// A transport failure with its cause.
    pub(crate) fn transport(what: &str, cause: impl std::fmt::Display) -> Self {
        Self::Transport(format!("{what}: {cause}"))
    }

    /// True where the server gave a wrong answer, not merely none.
    pub(crate) fn is_wrong_answer(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }
}
