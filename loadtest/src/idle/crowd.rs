//! Idle streams in one or more processes, because a process may open too few files for all of them.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::member::OTHER_FILES;
use crate::cli::duration;
use crate::mcp::Mode;

/// Maximum streams of one process. A lower limit of open files reduces it.
pub(super) const SHARE: usize = 10_000;
const LOOK_EVERY: Duration = Duration::from_millis(100);
const STUCK: Duration = Duration::from_secs(60);
const EACH: Duration = Duration::from_millis(20);

/// The streams of a crowd, or of one of its processes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Wanted {
    #[arg(long = "url", required = true)]
    pub(super) urls: Vec<String>,
    #[arg(long, value_enum)]
    pub(super) mode: Mode,
    /// Open only sessions, without streams.
    #[arg(long)]
    pub(super) bare: bool,
    /// Number of streams before this share.
    #[arg(long)]
    pub(super) first: usize,
    #[arg(long)]
    pub(super) count: usize,
    #[arg(long, value_parser = duration)]
    pub(super) keep_alive: Duration,
}

/// The state of streams or sessions, which a process of the crowd prints repeatedly.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) open: usize,
    pub(super) refused: u64,
    /// Streams that ended before this tool released them.
    pub(super) dropped: u64,
    /// Keep-alives that had not come when the next one was due.
    pub(super) missed: u64,
    /// The first failure.
    pub(super) example: Option<String>,
}

impl Seen {
    pub(super) fn add(mut self, other: Self) -> Self {
        self.open += other.open;
        self.refused += other.refused;
        self.dropped += other.dropped;
        self.missed += other.missed;
        self.example = self.example.or(other.example);
        self
    }

    pub(super) fn lost(&self) -> u64 {
        self.refused + self.dropped
    }
}

pub(super) struct Crowd(Vec<Share>);

struct Share {
    child: Child,
    seen: watch::Receiver<Seen>,
    reader: JoinHandle<anyhow::Result<()>>,
}

impl Crowd {
    pub(super) async fn open(wanted: &Wanted) -> anyhow::Result<Self> {
        let limit = crate::files::raise_limit(SHARE as u64 + OTHER_FILES)?;
        let most = usize::try_from(limit.saturating_sub(OTHER_FILES))?.min(SHARE);
        ensure!(
            most > 0,
            "this process may open {limit} files; raise that (`ulimit -n`)"
        );
        let end = wanted.first + wanted.count;
        let firsts = (wanted.first..end).step_by(most);
        let shares = firsts.map(|first| Share::start(wanted, first, most.min(end - first)));
        let crowd = Self(shares.collect::<anyhow::Result<_>>()?);
        let what = if wanted.bare { "sessions" } else { "streams" };
        let deadline = Instant::now() + STUCK + EACH.mul_f64(wanted.count as f64);
        loop {
            sleep(LOOK_EVERY).await;
            let (seen, count) = (crowd.now(), wanted.count);
            let (open, lost) = (seen.open, seen.lost());
            if open as u64 + lost >= count as u64 {
                crate::progress(&format!("{open} {what} open, {lost} lost"));
                return Ok(crowd);
            }
            let ended = crowd.0.iter().any(|share| share.reader.is_finished());
            ensure!(!ended, "a process of the crowd ended early");
            ensure!(
                Instant::now() < deadline,
                "only {open} of {count} {what} could be opened, and {lost} were lost; a server that may open too few \
                 files (`ulimit -n`) does not take more"
            );
        }
    }

    pub(super) fn now(&self) -> Seen {
        let shares = self.0.iter().map(|share| share.seen.borrow().clone());
        shares.fold(Seen::default(), Seen::add)
    }

    pub(super) async fn close(mut self) -> anyhow::Result<Seen> {
        for share in &mut self.0 {
            drop(share.child.stdin.take());
            (&mut share.reader).await??;
            share.child.wait().await?;
        }
        Ok(self.now())
    }
}

impl Share {
    fn start(wanted: &Wanted, first: usize, count: usize) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("could not find this program")?;
        let mut command = Command::new(program);
        let keep_alive = format!("{}ms", wanted.keep_alive.as_millis());
        command
            .args(["idle-crowd", "--mode", wanted.mode.name()])
            .args(["--first", &first.to_string()])
            .args(["--count", &count.to_string()])
            .args(["--keep-alive", &keep_alive])
            .args(wanted.urls.iter().flat_map(|url| ["--url", url]))
            .args(wanted.bare.then_some("--bare"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn();
        let mut child = child.context("could not start a process for the crowd")?;
        let output = child.stdout.take().context("no output to read")?;
        let (told, seen) = watch::channel(Seen::default());
        let reader = tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Some(line) = lines.next_line().await? {
                told.send_replace(serde_json::from_str(&line)?);
            }
            Ok(())
        });
        Ok(Self {
            child,
            seen,
            reader,
        })
    }
}
