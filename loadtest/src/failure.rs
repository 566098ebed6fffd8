#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    #[error("transport: {0}")]
    Transport(String),
    #[error("HTTP status {status}: {body}")]
    Status {
        status: u16,
        retry_after_s: Option<u64>,
        body: String,
    },
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
