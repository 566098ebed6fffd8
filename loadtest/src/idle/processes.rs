use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::crowd::OTHER_FILES;
use super::summary::{Said, Summary};
use crate::mcp::Mode;

/// Maximum streams of one process. A lower limit of open files reduces it.
pub(super) const SHARE: usize = 10_000;
const LOOK_EVERY: Duration = Duration::from_millis(100);
const STUCK: Duration = Duration::from_secs(60);
const EACH: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) urls: Vec<String>,
    pub(super) mode: Mode,
    pub(super) bare: bool,
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) keep_alive: Duration,
}

pub(super) struct Crowd {
    shares: Vec<Share>,
}

struct Share {
    child: Child,
    now: Arc<Mutex<(usize, u64)>>,
    reader: JoinHandle<anyhow::Result<Summary>>,
}

impl Crowd {
    pub(super) async fn open(wanted: &Wanted) -> anyhow::Result<Self> {
        let limit = crate::files::raise_limit(SHARE as u64 + OTHER_FILES)?;
        let most = usize::try_from(limit.saturating_sub(OTHER_FILES)).unwrap_or(SHARE);
        if most == 0 {
            bail!("this process may open {limit} files; raise that (`ulimit -n`)");
        }
        let mut crowd = Self { shares: Vec::new() };
        let mut begun = 0;
        while begun < wanted.count {
            let count = most.min(SHARE).min(wanted.count - begun);
            crowd.shares.push(Share::start(wanted, begun, count)?);
            begun += count;
        }
        let what = if wanted.bare { "sessions" } else { "streams" };
        let (mut before, mut since) = (0, tokio::time::Instant::now());
        let count = u32::try_from(wanted.count).unwrap_or(u32::MAX);
        let latest = since + STUCK + EACH.saturating_mul(count);
        let mut said = since;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Some(ended) = crowd
                .shares
                .iter()
                .position(|share| share.reader.is_finished())
            {
                let share = crowd.shares.swap_remove(ended);
                let summary = share.reader.await.context("its reader ended early")??;
                let lost = summary.failed();
                let example = summary.example.unwrap_or_default();
                bail!("{lost} {what} were lost, which are all of one process: {example}");
            }
            let (open, failed) = crowd.now();
            let settled = open + usize::try_from(failed).unwrap_or(usize::MAX);
            if settled >= wanted.count {
                crate::progress(&format!("{open} {what} open, {failed} lost"));
                return Ok(crowd);
            }
            if settled > before {
                (before, since) = (settled, tokio::time::Instant::now());
            }
            if since.elapsed() > STUCK || tokio::time::Instant::now() > latest {
                bail!(
                    "only {open} of {} {what} could be opened, and {failed} were lost; a server that may open too few \
                     files (`ulimit -n`) does not take more",
                    wanted.count
                );
            }
            if said.elapsed() > Duration::from_secs(1) {
                said = tokio::time::Instant::now();
                crate::progress(&format!("opening: {open} of {} {what}", wanted.count));
            }
        }
    }

    pub(super) fn now(&self) -> (usize, u64) {
        let said = self.shares.iter().map(Share::said);
        said.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    pub(super) async fn close(self) -> anyhow::Result<Summary> {
        let mut all = Summary::default();
        for share in self.shares {
            let Share {
                mut child, reader, ..
            } = share;
            drop(child.stdin.take());
            all.add(reader.await.context("its reader ended early")??);
            child.wait().await.context("could not wait for its end")?;
        }
        Ok(all)
    }
}

impl Share {
    fn start(wanted: &Wanted, begun: usize, count: usize) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("could not find this program")?;
        let mut command = Command::new(program);
        command
            .arg("idle-crowd")
            .args(["--mode", wanted.mode.name()])
            .args(["--first", &(wanted.first + begun).to_string()])
            .args(["--count", &count.to_string()])
            .args([
                "--keep-alive",
                &format!("{}ms", wanted.keep_alive.as_millis()),
            ]);
        for url in &wanted.urls {
            command.args(["--url", url]);
        }
        if wanted.bare {
            command.arg("--bare");
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("could not start a process for the crowd")?;
        let output = child.stdout.take().context("no output to read")?;
        let now = Arc::new(Mutex::new((0, 0)));
        let heard = Arc::clone(&now);
        let reader = tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Some(line) = lines.next_line().await? {
                match serde_json::from_str(&line).context("a crowd process said something else")? {
                    Said::Open { open, failed } => {
                        *heard.lock().unwrap_or_else(PoisonError::into_inner) = (open, failed);
                    }
                    Said::End(summary) => return Ok(summary),
                }
            }
            bail!("a process of the crowd ended early")
        });
        Ok(Self { child, now, reader })
    }

    fn said(&self) -> (usize, u64) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
