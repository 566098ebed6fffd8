//! Errors in rules.

use std::io;
use std::path::PathBuf;

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule {rule:?}: {reason}")]
pub struct RuleError {
    /// The rule's name.
    pub rule: String,
    /// The reason.
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

/// Rules that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// One rule cannot be used.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file has no rules.
    #[error("{path}: the file has no rules. Write rules = [] to allow everything to all callers")]
    NoRule {
        /// The file.
        path: PathBuf,
    },
    /// The file is invalid.
    #[error("{path}: {reason}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The position and the reason.
        reason: String,
    },
}
