use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON object, also for a failure.
    Json,
}

/// Prints a text without terminal control characters, because part of it may come from servers and files. A closed pipe
/// (`… | head`) is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let text = plain_lines(text);
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

pub(crate) fn err(text: &str) {
    let mut terminal = io::stderr().lock();
    let written = terminal.write_all(text.as_bytes());
    let _ = written.and_then(|()| terminal.flush());
}

pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value).context("cannot write the result as JSON")?;
    Ok(escaped(&text) + "\n")
}

/// Escapes terminal control characters, which JSON can have only in strings. Line breaks stay, because they occur only
/// between strings.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\n' => text.push(letter),
            letter if is_obeyed(letter) => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text
}

/// Makes foreign text safe to print on one line.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|letter| shown(letter, false)).collect()
}

/// Keeps line breaks and tabs.
pub(crate) fn plain_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.chars().map(|letter| shown(letter, true)).collect()
}

fn shown(letter: char, has_lines: bool) -> char {
    match letter {
        '\n' | '\t' if has_lines => letter,
        letter if is_obeyed(letter) => ' ',
        letter => letter,
    }
}

fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{json, plain, plain_lines};

    /// These characters move the cursor, ring the bell, begin a command or reverse text.
    const OBEYED: &str = "a\u{1b}[2Jb\u{7}c\u{9b}31md\u{7f}e\u{202e}f\rg";

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        let shown = "a [2Jb c 31md e f g";
        assert_eq!(plain(OBEYED), shown);
        assert_eq!(plain("a\tb\nc"), "a b c");
        assert_eq!(plain_lines(OBEYED), shown);
        assert_eq!(plain_lines("a\tb\r\nc\n"), "a\tb\nc\n");
    }

    #[test]
    fn json_has_every_letter_and_shows_none_of_them() {
        let value = json!({ "text": OBEYED, OBEYED: "ä\n" });
        let text = json(&value).unwrap();
        let obeyed = text
            .chars()
            .filter(|letter| letter.is_control() || *letter == '\u{202e}');
        assert_eq!(obeyed.filter(|letter| *letter != '\n').count(), 0, "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
