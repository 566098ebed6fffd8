//! Exit codes, and the only place that prints why a command failed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::json;
use shoal_policy::PolicyError;

use crate::config;
use crate::print::{self, Output};

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    code: Code,
    error: anyhow::Error,
    /// Standard output has the result, so the error must not follow it there.
    printed: bool,
    told: bool,
}

/// Exit codes of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// A failure without a code of its own.
    Failed = 1,
    /// Invalid arguments or configuration.
    Usage = 2,
    /// The tool reported an error.
    Tool = 3,
    /// The server could not be reached.
    Unreachable = 4,
    /// The server answered with an error.
    Refused = 5,
    /// The command timed out.
    TimedOut = 6,
    /// Interrupted: 128 plus the number of SIGINT.
    Interrupted = 130,
}

const LAST_LINE: Duration = Duration::from_secs(1);

impl Code {
    /// All codes, in ascending order.
    pub const ALL: [Self; 7] = [
        Self::Failed,
        Self::Usage,
        Self::Tool,
        Self::Unreachable,
        Self::Refused,
        Self::TimedOut,
        Self::Interrupted,
    ];

    /// Explains the code, for help and man pages.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Failed => {
                "any other failure. `status`: the store is unavailable. `status --ready`: the node is not ready, or cannot be reached"
            }
            Self::Usage => "invalid arguments or configuration",
            Self::Tool => {
                "`call`, `tasks watch`: the tool reports an error (`isError`), or asks a question that the command cannot answer. `worker-check`, `policy test`: a check fails"
            }
            Self::Unreachable => "the server or admin port cannot be reached",
            Self::Refused => "the server answered with an error",
            Self::TimedOut => "the server exceeded `--timeout`",
            Self::Interrupted => {
                "you interrupted the command; `call` then cancels the call. `serve`, `stdio`: a second signal ended the process before its shutdown was complete"
            }
        }
    }

    pub(crate) fn help() -> String {
        let mut help = "Exit codes:\n    0  success\n".to_owned();
        for code in Self::ALL {
            let _ = writeln!(help, "  {:3}  {}", code as u8, code.meaning());
        }
        help
    }
}

impl Failure {
    /// Creates a failure.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            error: anyhow::Error::msg(message.into()),
            printed: false,
            told: false,
        }
    }

    /// Creates a failure that the printed result explains.
    pub fn shown(message: impl Into<String>) -> Self {
        Self::new(Code::Tool, message).after_output()
    }

    /// Marks that standard output has the result, so that the error must not follow it there.
    #[must_use]
    pub fn after_output(mut self) -> Self {
        self.printed = true;
        self
    }

    /// Creates a failure with [`Code::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        self.code as u8
    }

    /// Prints the reason now. [`report`](Self::report) does not repeat it.
    pub(crate) fn tell(&mut self) {
        self.told = true;
        shoal_telemetry::logging::tell(&self.line());
    }

    fn line(&self) -> String {
        print::plain_lines(&format!("shoal: {:#}\n", self.error))
    }

    /// Prints the reason to standard error, and, if the caller requested JSON and standard output is empty, to standard
    /// output as JSON.
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
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            if prints_json {
                let _ = print::json(&object).and_then(|text| print::print(&text));
            }
            let _ = done.send(());
        });
        let _ = written.recv_timeout(LAST_LINE);
        ExitCode::from(self.code())
    }
}

// `Display` prints the causes, so there is no `source`.
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
        // The file of policy rules is part of the configuration.
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
