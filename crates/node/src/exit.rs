//! How the process ends: exit codes, and the one place that prints why.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::config;

/// Why the process could not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
}

/// Something went wrong while running.
const RUNNING: u8 = 1;
/// What was asked cannot be done: flags, configuration, a combination that this version has not.
const USAGE: u8 = 2;
/// How long the last line may take.
const LAST_LINE: Duration = Duration::from_secs(1);
/// Interrupted twice (128 + SIGINT).
pub(crate) const INTERRUPTED: u8 = 130;

impl Failure {
    /// What was asked cannot be done.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            code: USAGE,
            error: anyhow::Error::msg(message.into()),
        }
    }

    /// The process's exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Prints why, with every cause, to standard error.
    pub fn report(&self) -> ExitCode {
        let line = format!("shoal: {:#}\n", self.error);
        let (done, written) = mpsc::channel();
        thread::spawn(move || {
            // Nobody is left to tell when standard error is closed.
            let _ = std::io::stderr().write_all(line.as_bytes());
            let _ = done.send(());
        });
        // And nobody is waited for who does not read it.
        let _ = written.recv_timeout(LAST_LINE);
        ExitCode::from(self.code)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        Self {
            code: USAGE,
            error: error.into(),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self {
            code: RUNNING,
            error,
        }
    }
}
