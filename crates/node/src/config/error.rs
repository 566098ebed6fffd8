use std::fmt;
use std::path::PathBuf;

use super::finding::Finding;

/// Why a configuration is unusable.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The settings are invalid.
    #[error("{0}")]
    Unusable(Findings),
}

impl Error {
    pub(crate) fn of(finding: Finding) -> Self {
        Self::Unusable(Findings::new(vec![finding]))
    }
}

/// All errors of the settings; at least one.
#[derive(Debug)]
pub struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn new(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_cached_key(Finding::order);
        Self(findings)
    }

    /// Returns the findings.
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
