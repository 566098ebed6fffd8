//! Finds the programs that tests start.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The variable that names the `shoal` binary to test.
pub const SHOAL: &str = "TEST_SHOAL_BIN";

/// Returns the `shoal` binary: [`SHOAL`], else the one beside this program.
pub fn shoal() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(SHOAL) {
        return Ok(PathBuf::from(path));
    }
    beside("shoal").with_context(|| {
        format!("build it (cargo build -p shoal-node), or name it in the variable {SHOAL}")
    })
}

/// Returns `chaos_tools`, which is built with this crate.
pub fn chaos_tools() -> anyhow::Result<PathBuf> {
    beside("chaos_tools").context("build it: cargo build -p shoal-testkit --bins")
}

/// Returns an example of the `shoal-mcp` crate.
pub fn example(name: &str) -> anyhow::Result<PathBuf> {
    let name = Path::new("examples").join(name);
    beside(&name.to_string_lossy()).context("build it: cargo build -p shoal-mcp --examples")
}

/// Also looks in the parent directory, because tests lie one level deeper.
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
