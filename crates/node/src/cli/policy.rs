//! Arguments of `shoal policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;

/// `shoal policy …`
#[derive(Clone, Debug, Subcommand)]
pub enum PolicyCommand {
    /// Ask the rules about the cases of a file, and say which rule decided each.
    Test(PolicyTest),
}

/// `shoal policy test`
#[derive(Clone, Debug, Args)]
pub struct PolicyTest {
    /// The file with `[[cases]]` (TOML), and with `[[rules]]` where those of the configuration are not meant.
    #[arg(value_name = "FILE")]
    pub cases: PathBuf,
    /// The configuration file whose rules are tested (TOML); also by SHOAL_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A file with rules, as policy.file names one, in place of a configuration.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub rules: Option<PathBuf>,
    /// How to print it.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
}
