//! Why a configuration cannot be used, in words that say what to change.

use std::path::PathBuf;

use super::layers::Source;

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
    /// The file is not TOML.
    #[error("the configuration file {}, line {line}, is not TOML: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// A setting that does not exist, or a value that it cannot have.
    #[error("{setting}, set by {origin}: {reason}{}", hint(help))]
    Setting {
        /// The setting's name, dotted.
        setting: String,
        /// Who set it.
        origin: Source,
        /// What is wrong.
        reason: String,
        /// What the setting is, where there is such a setting.
        help: Option<String>,
    },
    /// Settings that do not go together, or that need something that is not there.
    #[error("{setting}, set by {origin}: {reason}")]
    Rule {
        /// The setting to change, dotted.
        setting: String,
        /// Who set it.
        origin: Source,
        /// What is wrong and what is allowed.
        reason: String,
    },
}

fn hint(help: &Option<String>) -> String {
    help.as_ref()
        .map(|help| format!("\n  {help}"))
        .unwrap_or_default()
}
