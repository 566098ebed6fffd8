//! Standard output, for commands that print and end.

use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;
use serde::Serialize;

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

/// A value as JSON for people and programs.
///
/// # Errors
/// When it cannot be written so.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value).context("cannot write the result as JSON")?;
    Ok(text + "\n")
}

/// A text of somebody else on one line, without what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(shown).collect()
}
