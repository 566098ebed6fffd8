//! `shoal install`: this program, copied to where another image needs it.
//!
//! An init container does this for a pool whose tools have an image of their own. The program copies itself
//! because Shoal's image need not have any other.

use std::path::Path;
use std::{env, fs};

use anyhow::Context as _;

use crate::exit::Failure;

/// Copies the running program to `directory/shoal`. Whoever looks there finds all of it or nothing.
///
/// # Errors
/// A directory that cannot be written to.
pub fn run(directory: &Path) -> Result<(), Failure> {
    let program = env::current_exe().context("cannot find the program that runs")?;
    let (part, whole) = (directory.join(".shoal.part"), directory.join("shoal"));
    // Its permissions come along.
    fs::copy(&program, &part)
        .and_then(|_| fs::rename(&part, &whole))
        .with_context(|| format!("cannot copy {} to {}", program.display(), whole.display()))?;
    Ok(())
}
