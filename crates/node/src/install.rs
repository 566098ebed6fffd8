//! `shoal install`: puts this program somewhere else, where there is no shell and no `cp`.
//!
//! The image holds nothing but the binary. An init container that runs this brings it into a volume, from
//! which another image, the one with a tool's runtime, starts it.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::exit::Failure;
use crate::print::print;

/// Everybody may run it: the container that starts it may well have another user.
const MODE: u32 = 0o755;
/// What the file is called in a directory.
const NAME: &str = "shoal";

/// Copies the running program to `to`, or into it if it is a directory, and prints where it is.
///
/// A program that is there already is replaced in one step, also while it runs: a copy is complete or not there.
///
/// # Errors
/// When the running program cannot be read, or the target's directory not be written.
pub fn run(to: &Path) -> Result<(), Failure> {
    let program = std::env::current_exe().context("cannot find the running program")?;
    let target = target(to);
    copy(&program, &target)?;
    Ok(print(&format!("{}\n", target.display()))?)
}

fn target(to: &Path) -> PathBuf {
    match to.is_dir() {
        true => to.join(NAME),
        false => to.to_owned(),
    }
}

fn copy(program: &Path, target: &Path) -> anyhow::Result<()> {
    let beside = beside(target);
    let copied = write(program, &beside).and_then(|()| fs::rename(&beside, target));
    if copied.is_err() {
        // Nothing half-written stays; it may not even be there.
        let _ = fs::remove_file(&beside);
    }
    copied.with_context(|| {
        format!(
            "cannot copy {} to {}: its directory must exist and be writable for this user",
            program.display(),
            target.display()
        )
    })
}

/// In the same directory, so that it can be renamed; of a name of its own, for two that do this at once.
fn beside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or(NAME.as_ref()));
    name.push(format!(".{}", std::process::id()));
    target.with_file_name(name)
}

fn write(program: &Path, file: &Path) -> io::Result<()> {
    let mut from = File::open(program)?;
    let mut to = File::create_new(file)?;
    io::copy(&mut from, &mut to)?;
    to.set_permissions(Permissions::from_mode(MODE))
}
