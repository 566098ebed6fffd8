use std::time::Duration;

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

    /// Whether the server refused only for now.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Status {
                status: 429 | 503,
                ..
            }
        )
    }

    /// Returns the pause before a retry, `otherwise` if the server names none. `None` if a retry is useless.
    pub(crate) fn retry_after(&self, otherwise: Duration) -> Option<Duration> {
        match self {
            Self::Status { retry_after_s, .. } if self.is_passing() => {
                Some(retry_after_s.map_or(otherwise, Duration::from_secs))
            }
            _ => None,
        }
    }
}
