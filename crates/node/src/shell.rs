//! `shoal completions` and `shoal man`.

use std::path::Path;

use anyhow::Context as _;
use clap_complete::Shell;

use crate::exit::Failure;
use crate::print::print;
use crate::program::Program;

/// Prints a completion script.
///
/// # Errors
/// If standard output cannot be written.
pub fn completions(shell: Shell, program: &Program) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program.command(), &program.name, &mut script);
    Ok(print(&String::from_utf8_lossy(&script))?)
}

/// Writes the man pages into a directory.
///
/// # Errors
/// If the directory is missing or cannot be written.
pub fn man(to: &Path, program: &Program) -> Result<(), Failure> {
    let written = clap_mangen::generate_to(program.command(), to);
    let reason = || format!("cannot write man pages to {}", to.display());
    Ok(written.with_context(reason)?)
}
