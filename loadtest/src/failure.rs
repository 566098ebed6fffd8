//! Why an exchange with the server under test failed.

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    /// The connection could not be opened, broke, or was silent for too long.
    #[error("transport: {0}")]
    Transport(String),
    /// The server refused at the HTTP level.
    #[error("HTTP status {status}: {body}")]
    Status {
        status: u16,
        retry_after_s: Option<u64>,
        body: String,
    },
    /// The server's answer is not the expected one.
    #[error("wrong answer: {0}")]
    Wrong(String),
}

impl Failure {
    pub(crate) fn transport(what: &str, cause: impl std::fmt::Display) -> Self {
        Self::Transport(format!("{what}: {cause}"))
    }

    pub(crate) fn is_wrong_answer(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }
}
