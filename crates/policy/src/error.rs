//! Errors in rules.

use std::io;
use std::path::PathBuf;

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule {rule:?}: {reason}")]
pub struct RuleError {
    /// The name of the rule.
    pub rule: String,
    /// Why the rule cannot be used.
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

/// Why rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// One rule cannot be used.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The file of rules cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file's path.
        path: PathBuf,
        /// Why the file cannot be read.
        error: io::Error,
    },
    /// The file has no rules.
    #[error("{path}: the file has no rules. If that is intended, write rules = []")]
    NoRule {
        /// The file's path.
        path: PathBuf,
    },
    /// The file of rules is invalid.
    #[error("{path}: {reason}")]
    Syntax {
        /// The file's path.
        path: PathBuf,
        /// The position of the error, and its reason.
        reason: String,
    },
}
