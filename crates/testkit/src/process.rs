//! Runs programs: their announcements, logs, signals and end.

mod family;
mod launch;

use std::io::PipeReader;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout};
use tokio::sync::watch;
use tokio::time::timeout;

pub use launch::Launch;

/// The default time limit, longer than any wait on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

const LOG_TAIL: usize = 4_000;

/// A running program. Dropping it kills the program and all descendants.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    lines: watch::Receiver<Vec<String>>,
    log: PathBuf,
    _unread: Option<PipeReader>,
}

impl Process {
    /// Starts a program.
    pub fn start(launch: &Launch) -> anyhow::Result<Self> {
        let (mut command, unread) = launch.command()?;
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", launch.program.display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let (sender, lines) = watch::channel(Vec::new());
        tokio::spawn(collect(stdout, sender));
        Ok(Self {
            name: launch.name.clone(),
            child,
            lines,
            log: launch.log.clone(),
            _unread: unread,
        })
    }

    /// Waits for a line of standard output with this prefix, and returns the rest.
    ///
    /// # Errors
    ///
    /// If the program ends first, or takes too long.
    pub async fn announced(&mut self, prefix: &str) -> anyhow::Result<String> {
        let found = timeout(SOON, async {
            let lines = self
                .lines
                .wait_for(|lines| lines.iter().any(|line| line.starts_with(prefix)))
                .await
                .ok()?;
            lines
                .iter()
                .find_map(|line| line.strip_prefix(prefix))
                .map(str::to_owned)
        })
        .await;
        match found {
            Ok(Some(rest)) => Ok(rest),
            Ok(None) => bail!("{} ended without {prefix:?}: {}", self.name, self.tail()),
            Err(_) => bail!("{} does not say {prefix:?}: {}", self.name, self.tail()),
        }
    }

    /// Returns the process id until the process was seen to have ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Whether the process exists, even if it is stopped.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal to the program, without its descendants.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = self
            .pid()
            .with_context(|| format!("{} has ended", self.name))?;
        kill(Pid::from_raw(pid.try_into()?), signal)
            .with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Waits until the program ends.
    pub async fn exit(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        match timeout(within, self.child.wait()).await {
            Ok(status) => status.with_context(|| format!("cannot wait for {}", self.name)),
            Err(_) => bail!("{} does not end: {}", self.name, self.tail()),
        }
    }

    /// Kills the program (SIGKILL). Its children live on, as after a crash.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        if self.is_running() {
            self.signal(Signal::SIGKILL)?;
        }
        self.exit(SOON).await.map(drop)
    }

    /// Terminates the program, and kills it with all descendants if it does not end in time.
    pub async fn end(mut self, within: Duration) {
        if self.signal(Signal::SIGTERM).is_ok() {
            // If this times out, dropping the process kills it.
            let _ = self.exit(within).await;
        }
    }

    /// Returns the path of the log, to which standard error goes.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Returns the end of the log.
    #[must_use]
    pub fn tail(&self) -> String {
        tail(&self.log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let (true, Some(pid)) = (self.is_running(), self.pid()) {
            family::kill(pid);
        }
    }
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

fn connect(command: &mut tokio::process::Command, stderr: Stdio) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .process_group(0)
        .kill_on_drop(true);
}
