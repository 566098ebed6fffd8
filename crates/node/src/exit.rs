//! How the process ends: exit codes, and the one place that prints why.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::json;
use shoal_policy::PolicyError;

use crate::cli::Output;
use crate::config;
use crate::print;

/// Why the process could not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    code: Code,
    error: anyhow::Error,
    /// Whether standard output has what was asked for: then nothing follows it there.
    printed: bool,
    /// Whether standard error has it.
    told: bool,
}

/// The exit codes of a process that could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Anything that is none of the others.
    Failed = 1,
    /// What was asked cannot be done.
    Usage = 2,
    /// A tool reports an error.
    Tool = 3,
    /// The server was not reached.
    Unreachable = 4,
    /// The server answered with an error.
    Refused = 5,
    /// It took too long.
    TimedOut = 6,
    /// 128 and the number of SIGINT.
    Interrupted = 130,
}

/// How long the last line may take.
const LAST_LINE: Duration = Duration::from_secs(1);

impl Code {
    /// Every code.
    pub const ALL: [Self; 7] = [
        Self::Failed,
        Self::Usage,
        Self::Tool,
        Self::Unreachable,
        Self::Refused,
        Self::TimedOut,
        Self::Interrupted,
    ];

    /// When a process ends with it.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Failed => {
                "something failed that has no code of its own; `status`: the node's store is not available; `status --ready`: the node is not ready, or not there"
            }
            Self::Usage => "what was asked cannot be done: the words typed, or the configuration",
            Self::Tool => {
                "`call`: the tool reports an error (`isError`), or asks for what cannot be answered; `worker-check`: the worker does not keep the contract; `policy test`: a case fails"
            }
            Self::Unreachable => "the server, or the admin port, cannot be reached",
            Self::Refused => "the server answered with an error",
            Self::TimedOut => "the server took longer than `--timeout`",
            Self::Interrupted => {
                "`call`: it was interrupted, and taken back; else: a second signal asked for the end before it was done"
            }
        }
    }

    /// What `--help` and the man page say of all of them.
    pub(crate) fn help() -> String {
        let mut help = "Exit codes:\n    0  it was done\n".to_owned();
        for code in Self::ALL {
            let _ = writeln!(help, "  {:3}  {}", code as u8, code.meaning());
        }
        help
    }
}

impl Failure {
    /// Why it ends with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            error: anyhow::Error::msg(message.into()),
            printed: false,
            told: false,
        }
    }

    /// What was asked for has been printed, and tells of a failure itself.
    pub fn shown(message: impl Into<String>) -> Self {
        Self::new(Code::Tool, message).after_output()
    }

    /// Standard output has what was asked for: nothing follows it there.
    #[must_use]
    pub fn after_output(mut self) -> Self {
        self.printed = true;
        self
    }

    /// What was asked cannot be done.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// The process's exit code.
    pub fn code(&self) -> u8 {
        self.code as u8
    }

    /// Prints why now, before what is left to do: [`report`](Self::report) does not say it again.
    pub(crate) fn tell(&mut self) {
        self.told = true;
        shoal_telemetry::logging::tell(&self.line());
    }

    fn line(&self) -> String {
        // Others may have chosen a part of it: a server, a file.
        print::plain_lines(&format!("shoal: {:#}\n", self.error))
    }

    /// Prints why, with every cause, to standard error; and as JSON to standard output where that is asked for and nothing was
    /// printed there.
    pub fn report(&self, output: Output) -> ExitCode {
        let line = (!self.told).then(|| self.line());
        let mut object =
            json!({ "error": { "exit_code": self.code(), "message": self.to_string() } });
        if let Some(config::Error::Unusable(findings)) = self.error.downcast_ref() {
            object["error"]["findings"] = json!(findings.list());
        }
        let prints_json = output == Output::Json && !self.printed;
        let (done, written) = mpsc::channel();
        thread::spawn(move || {
            if let Some(line) = line {
                // Nobody is left to tell when a stream is closed.
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            if prints_json {
                let _ = print::json(&object).and_then(|text| print::print(&text));
            }
            let _ = done.send(());
        });
        // And nobody is waited for who does not read it.
        let _ = written.recv_timeout(LAST_LINE);
        ExitCode::from(self.code())
    }
}

// What it displays has every cause already.
impl std::error::Error for Failure {}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        Self {
            code: Code::Usage,
            error: error.into(),
            printed: false,
            told: false,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        // A file of rules belongs to the configuration.
        let code = match error.is::<PolicyError>() {
            true => Code::Usage,
            false => Code::Failed,
        };
        Self {
            code,
            error,
            printed: false,
            told: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn the_page_of_the_command_line_has_every_exit_code() {
        let page = include_str!("../../../docs/command-line.md");
        for code in Code::ALL {
            let row = format!("| {} | {} |\n", code as u8, code.meaning());
            assert!(page.contains(&row), "{row}");
        }
    }
}
