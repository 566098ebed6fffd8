//! Standard output, for commands that print and end.

use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;

/// Prints a text as it is. Whoever has read enough (`… | head`) is no failure.
///
/// # Errors
/// When standard output cannot be written for another reason.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}
