//! The failures of an exchange.

use std::time::Duration;

/// The failure of an exchange.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// The connection failed.
    #[error("transport: {0}")]
    Transport(String),
    /// The server refused.
    #[error("HTTP status {status}: {body:.200}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The value of `Retry-After`.
        retry_after_s: Option<u64>,
        /// The body of the answer.
        body: String,
    },
    /// The answer is not the expected one.
    #[error("wrong answer: {0}")]
    Wrong(String),
}

impl Failure {
    /// Returns the failure of a connection.
    pub fn transport(what: &str, cause: impl std::fmt::Display) -> Self {
        Self::Transport(format!("{what}: {cause}"))
    }

    /// Whether the server refused only for now.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Status {
                status: 429 | 503,
                ..
            }
        )
    }

    /// Returns the pause before a retry, `otherwise` if the server names none. `None` if a retry is useless.
    #[must_use]
    pub fn retry_after(&self, otherwise: Duration) -> Option<Duration> {
        match self {
            Self::Status { retry_after_s, .. } if self.is_passing() => {
                Some(retry_after_s.map_or(otherwise, Duration::from_secs))
            }
            _ => None,
        }
    }
}
