use std::io;
use std::path::PathBuf;

/// An unusable rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule {rule:?}: {reason}")]
pub struct RuleError {
    /// The rule's name.
    pub rule: String,
    /// Why the rule is unusable.
    pub reason: String,
}

impl RuleError {
    pub(crate) fn new(rule: &str, reason: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Why rules are unusable.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// One rule is unusable.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file's path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file has no rules.
    #[error("{path}: the file has no rules. If that is intended, write rules = []")]
    NoRule {
        /// The file's path.
        path: PathBuf,
    },
    /// The file is invalid.
    #[error("{path}: {reason}")]
    Syntax {
        /// The file's path.
        path: PathBuf,
        /// The error's position and reason.
        reason: String,
    },
}
