use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::print::Output;

/// `shoal policy …`
#[derive(Clone, Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check the cases of a file, and print the rule that decided each case.
    Test(PolicyTest),
}

/// `shoal policy test`
#[derive(Clone, Debug, Args)]
pub struct PolicyTest {
    /// File with the `[[cases]]` to check (TOML). If the file also has `[[rules]]`, Shoal tests these rules.
    #[arg(value_name = "FILE")]
    pub cases: PathBuf,
    /// Configuration file with the rules to test (TOML). Without this flag, Shoal reads the file that SHOAL_CONFIG names.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// File with the `[[rules]]` to test, as for policy.file, instead of a configuration file.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub rules: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
}
