//! Running programs: what they announce, what they log, signals, and their certain end.

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

/// Longer than anything that is waited for takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// How much of a log an error quotes.
const LOG_TAIL: usize = 4_000;

/// A running program, in a process group of its own. Dropped, it is killed with all its descendants.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    lines: watch::Receiver<Vec<String>>,
    log: PathBuf,
    /// The end of its standard error that nobody reads.
    _unread: Option<PipeReader>,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// When it cannot be started, or its log cannot be written.
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

    /// What follows `prefix` on the line of standard output that begins with it, as soon as it is there.
    ///
    /// # Errors
    /// When the program ends first, or takes too long.
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

    /// Its number; `None` once it has ended and that was seen.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Whether it runs (or is stopped).
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal to the program alone, not to its descendants.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = self
            .pid()
            .with_context(|| format!("{} has ended", self.name))?;
        kill(Pid::from_raw(pid.try_into()?), signal)
            .with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it has not ended in time.
    pub async fn exit(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        match timeout(within, self.child.wait()).await {
            Ok(status) => status.with_context(|| format!("cannot wait for {}", self.name)),
            Err(_) => bail!("{} does not end: {}", self.name, self.tail()),
        }
    }

    /// Kills it (SIGKILL) and waits until it is gone. What it has started lives on, as when a process
    /// crashes.
    ///
    /// # Errors
    /// When it does not go.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        if self.is_running() {
            self.signal(Signal::SIGKILL)?;
        }
        self.exit(SOON).await.map(drop)
    }

    /// Asks for its end (SIGTERM) and kills it, with all it has started, if it is not gone in time.
    pub async fn end(mut self, within: Duration) {
        if self.signal(Signal::SIGTERM).is_ok() {
            // Dropped, it is killed.
            let _ = self.exit(within).await;
        }
    }

    /// The file that its standard error goes to.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The end of its log.
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

/// The end of a log file.
#[must_use]
pub fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let from = bytes.len().saturating_sub(LOG_TAIL);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// Reads standard output to its end, so that the program never waits for a reader.
async fn collect(stdout: ChildStdout, sender: watch::Sender<Vec<String>>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        sender.send_modify(|seen| seen.push(line));
    }
}

/// How standard streams of a program are connected here.
fn connect(command: &mut tokio::process::Command, stderr: Stdio) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .process_group(0)
        .kill_on_drop(true);
}
