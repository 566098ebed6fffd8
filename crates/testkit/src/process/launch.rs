use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;

use anyhow::Context as _;
use tokio::process::Command;

/// A program with its arguments and environment.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The name for messages.
    pub name: String,
    /// The program's path and its arguments, perhaps after those of a program that starts it.
    words: Vec<OsString>,
    /// Variables to set, besides inherited ones that do not begin with `SHOAL_`.
    pub environment: Vec<(String, String)>,
    /// The file to which standard error is appended.
    pub log: PathBuf,
    /// Whether standard error goes to a full pipe that nobody reads, instead of the log.
    pub is_unread: bool,
}

impl Launch {
    /// Creates a launch without arguments.
    pub fn new(name: &str, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            words: vec![program.into().into()],
            environment: Vec::new(),
            log: log.into(),
            is_unread: false,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<A: Into<OsString>>(mut self, more: impl IntoIterator<Item = A>) -> Self {
        self.words.extend(more.into_iter().map(Into::into));
        self
    }

    /// Starts the program by another one, such as `taskset -c 0`.
    #[must_use]
    pub fn under(mut self, starter: &[OsString]) -> Self {
        self.words.splice(0..0, starter.iter().cloned());
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a variable for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    pub(super) fn program(&self) -> &Path {
        Path::new(&self.words[0])
    }

    pub(super) fn command(&self) -> anyhow::Result<(Command, Option<PipeReader>)> {
        let (stderr, unread) = if self.is_unread {
            let (reader, writer) = full_pipe().context("cannot make a pipe")?;
            (Stdio::from(writer), Some(reader))
        } else {
            let log = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.log)
                .with_context(|| format!("cannot write {}", self.log.display()))?;
            (Stdio::from(log), None)
        };
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SHOAL_") {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok((command, unread))
    }
}

fn full_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    let mut filling = writer.try_clone()?;
    thread::spawn(move || while filling.write_all(&[b'\n'; 4096]).is_ok() {});
    Ok((reader, writer))
}
