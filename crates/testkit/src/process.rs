//! Runs programs: their announcements, logs, signals and end.

mod launch;
mod restartable;
pub mod usage;

use std::io::PipeReader;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

pub use launch::Launch;
pub use restartable::Restartable;

/// The default time limit, longer than any wait on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// Interpreters load their packages first.
const START: Duration = Duration::from_secs(180);

const LOG_TAIL: usize = 4_000;

/// A running program. Dropping it kills the program and all descendants.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: u32,
    lines: watch::Receiver<Vec<String>>,
    ended: watch::Receiver<Option<ExitStatus>>,
    log: PathBuf,
    _unread: Option<PipeReader>,
}

impl Process {
    /// Starts a program. It ends with the runtime of this call at the latest.
    pub fn start(launch: &Launch) -> anyhow::Result<Self> {
        let (mut command, unread) = launch.command()?;
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", launch.program().display()))?;
        let pid = child.id().context("no process id")?;
        let input = child.stdin.take();
        let stdout = child.stdout.take().context("no standard output")?;
        let (sender, lines) = watch::channel(Vec::new());
        tokio::spawn(collect(stdout, sender));
        let (sender, ended) = watch::channel(None);
        tokio::spawn(async move {
            let status = child.wait().await;
            drop(input);
            sender.send_replace(status.ok());
        });
        Ok(Self {
            name: launch.name.clone(),
            pid,
            lines,
            ended,
            log: launch.log.clone(),
            _unread: unread,
        })
    }

    /// Waits for a line of standard output with this prefix, and returns the rest.
    ///
    /// # Errors
    ///
    /// If the program ends first, or takes too long.
    pub async fn announced(&self, prefix: &str) -> anyhow::Result<String> {
        let mut lines = self.lines.clone();
        let found = |lines: &[String]| {
            Some(
                lines
                    .iter()
                    .find_map(|line| line.strip_prefix(prefix))?
                    .to_owned(),
            )
        };
        match timeout(START, lines.wait_for(|lines| found(lines).is_some())).await {
            Ok(Ok(lines)) => Ok(found(&lines).unwrap_or_default()),
            Ok(Err(_)) => bail!("{} ended without {prefix:?}: {}", self.name, self.tail()),
            Err(_) => bail!("{} does not say {prefix:?}: {}", self.name, self.tail()),
        }
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process exists, even if it is stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.ended.borrow().is_none()
    }

    /// Sends a signal to the program, without its descendants.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        ensure!(self.is_running(), "{} has ended", self.name);
        kill(Pid::from_raw(self.pid.try_into()?), signal)
            .with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Waits until the program ends.
    pub async fn exit(&self, within: Duration) -> anyhow::Result<ExitStatus> {
        let mut ended = self.ended.clone();
        let status = match timeout(within, ended.wait_for(Option::is_some)).await {
            Ok(status) => *status.with_context(|| format!("cannot wait for {}", self.name))?,
            Err(_) => bail!("{} does not end: {}", self.name, self.tail()),
        };
        status.context("no status")
    }

    /// Kills the program (SIGKILL). Its children live on, as after a crash.
    pub async fn kill(&self) -> anyhow::Result<()> {
        if self.is_running() {
            self.signal(Signal::SIGKILL)?;
        }
        self.exit(SOON).await.map(drop)
    }

    /// Terminates the program, and kills it with all descendants if it does not end in time.
    pub async fn end(&self, within: Duration) {
        if self.signal(Signal::SIGTERM).is_ok() && self.exit(within).await.is_err() {
            usage::kill_family(self.pid);
        }
    }

    /// Returns the end of the log, to which standard error goes.
    #[must_use]
    pub fn tail(&self) -> String {
        tail(&self.log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_running() {
            usage::kill_family(self.pid);
        }
    }
}

/// Runs a program to its end, and returns its standard output.
pub(crate) async fn output(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).kill_on_drop(true).output().await;
    let output = output.with_context(|| format!("cannot run {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{program} {}: {text}{errors}",
        arguments.join(" ")
    );
    Ok(text)
}

/// Returns the end of a log file.
#[must_use]
pub fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let from = bytes.len().saturating_sub(LOG_TAIL);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// Reads everything, because the program could block on standard output.
async fn collect(stdout: ChildStdout, sender: watch::Sender<Vec<String>>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        sender.send_modify(|seen| seen.push(line));
    }
}
