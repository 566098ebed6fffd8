//! Arguments of `shoal policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::print::Output;

/// `shoal policy …`
#[derive(Clone, Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check the cases of a file, and print the rule that decided each.
    Test(PolicyTest),
}

/// `shoal policy test`
#[derive(Clone, Debug, Args)]
pub struct PolicyTest {
    /// File with `[[cases]]` (TOML), and `[[rules]]` in place of the configuration's.
    #[arg(value_name = "FILE")]
    pub cases: PathBuf,
    /// Configuration file with the rules to test (TOML); also by SHOAL_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// File with rules, as for policy.file, in place of a configuration.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub rules: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
}
