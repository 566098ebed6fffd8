//! Runs named checks in order and prints a line for each.

use std::{error::Error, fmt, future::Future, process::ExitCode, time::Duration};

use anyhow::{Result, ensure};
use tokio::time::timeout;

const CHECK_TIME: Duration = Duration::from_secs(30);

/// The SDK or the era does not support the check.
#[derive(Debug)]
pub struct Skip(pub &'static str);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Skip {}

pub struct Runner {
    only: Vec<String>,
    failed: u32,
}

impl Runner {
    /// Runs the checks named in `only`, or all of them if it is empty.
    pub fn new(only: Vec<String>) -> Self {
        Self { only, failed: 0 }
    }

    /// Runs a check, if it is selected. Returns its value, unless the check was skipped or failed.
    pub async fn run<T>(
        &mut self,
        name: &str,
        check: impl Future<Output = Result<T>>,
    ) -> Option<T> {
        if !self.only.is_empty() && name != "connect" && !self.only.iter().any(|only| only == name)
        {
            return None;
        }
        let found = match timeout(CHECK_TIME, check).await {
            Ok(found) => found,
            Err(_) => Err(anyhow::anyhow!("no answer within {CHECK_TIME:?}")),
        };
        match found {
            Ok(value) => {
                println!("ok {name}");
                return Some(value);
            }
            Err(error) if error.is::<Skip>() => println!("skip {name}: {error}"),
            Err(error) => {
                self.failed += 1;
                println!("FAIL {name}: {}", format!("{error:#}").replace('\n', " | "));
            }
        }
        None
    }

    pub fn exit_code(&self) -> ExitCode {
        if self.failed > 0 {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

pub fn equal<T: PartialEq + fmt::Debug>(what: &str, got: T, want: T) -> Result<()> {
    ensure!(got == want, "{what}: expected {want:?}, got {got:?}");
    Ok(())
}

pub fn contains(text: &str, part: &str) -> Result<()> {
    ensure!(
        text.contains(part),
        "odd text {text:?}, which lacks {part:?}"
    );
    Ok(())
}

pub fn includes(what: &str, names: &[String], wanted: &[&str]) -> Result<()> {
    for name in wanted {
        ensure!(
            names.iter().any(|have| have == name),
            "{what}: no {name:?} among {names:?}"
        );
    }
    Ok(())
}
