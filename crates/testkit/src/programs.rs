//! Where the programs are that tests start.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The variable that names the `shoal` binary to test.
pub const SHOAL: &str = "TEST_SHOAL_BIN";

/// The `shoal` binary: what [`SHOAL`] names, else the one that was built beside this program.
///
/// # Errors
/// When there is none.
pub fn shoal() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(SHOAL) {
        return Ok(PathBuf::from(path));
    }
    beside("shoal").with_context(|| {
        format!("build it (cargo build -p shoal-node), or name it in the variable {SHOAL}")
    })
}

/// The server for chaos runs, `chaos_tools`, which is built with this crate.
///
/// # Errors
/// When it is not where this program was built.
pub fn chaos_tools() -> anyhow::Result<PathBuf> {
    beside("chaos_tools").context("build it: cargo build -p shoal-testkit --bins")
}

/// An example of the crate for authors of servers.
///
/// # Errors
/// When it was not built.
pub fn example(name: &str) -> anyhow::Result<PathBuf> {
    let name = Path::new("examples").join(name);
    beside(&name.to_string_lossy()).context("build it: cargo build -p shoal-mcp --examples")
}

/// A program in the build directory of this one (tests lie one level deeper).
fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the running program")?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .with_context(|| format!("no {name} beside {}", display(&own)))
}

fn display(path: &Path) -> std::path::Display<'_> {
    path.display()
}
