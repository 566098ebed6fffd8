//! Why a configuration cannot be used, in words that say what to change.

use std::fmt;
use std::path::PathBuf;

use super::finding::Finding;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Everything that is wrong with the settings.
    #[error("{0}")]
    Unusable(Findings),
}

impl Error {
    /// The one thing that is wrong.
    pub(crate) fn of(finding: Finding) -> Self {
        Self::Unusable(Findings::new(vec![finding]))
    }
}

/// Everything that is wrong with the settings. There is at least one.
#[derive(Debug)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// All of them, in the order in which somebody reads.
    pub(super) fn new(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_cached_key(Finding::order);
        Self(findings)
    }

    /// Each of them.
    pub fn list(&self) -> &[Finding] {
        &self.0
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = self.0.len() > 1;
        if several {
            write!(f, "the configuration has {} errors", self.0.len())?;
        }
        for finding in &self.0 {
            if several {
                f.write_str("\n  ")?;
            }
            write!(f, "{finding}")?;
            if let Some(help) = &finding.help {
                write!(f, "\n    {help}")?;
            }
        }
        Ok(())
    }
}
