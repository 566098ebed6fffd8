//! `shoal install`: copies this program out of an image that has no shell. An init container runs it, so that another
//! container can start the copy.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::exit::Failure;
use crate::print::print;

/// All users may run the copy, because the other container may run as another user.
const MODE: u32 = 0o755;
const NAME: &str = "shoal";

/// Copies the running program to the file or into the directory `to`. Replaces an existing file atomically.
///
/// # Errors
///
/// If the program cannot be read, or the target cannot be written.
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

/// In the same directory, so that the rename is atomic.
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
