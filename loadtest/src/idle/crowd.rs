//! One process of the crowd holds its streams until standard input ends, and reports in lines of JSON.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::source;
use super::summary::{Said, Summary};
use crate::cli;
use crate::connection::{Goodbye, Reply};
use crate::failure::Failure;
use crate::mcp::client::Client;
use crate::target::Target;

/// More streams at once would overflow a server's accept queue.
const OPENING: usize = 48;
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
const LATE: Duration = Duration::from_secs(1);
const SAY_EVERY: Duration = Duration::from_millis(250);
pub(super) const OTHER_FILES: u64 = 100;

pub(crate) fn execute(arguments: &cli::IdleCrowd) -> anyhow::Result<bool> {
    crate::files::raise_limit(arguments.count as u64 + OTHER_FILES)
        .context("could not read the limit of open files")?;
    crate::runtime(Some(1))?.block_on(hold(arguments))?;
    Ok(true)
}

async fn hold(arguments: &cli::IdleCrowd) -> anyhow::Result<()> {
    let targets = Target::resolve_all(&arguments.urls).await?;
    let (stop, stopped) = watch::channel(false);
    let open = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Semaphore::new(OPENING));
    let mut members = JoinSet::new();
    for number in arguments.first..arguments.first + arguments.count {
        let member = Member {
            target: targets[number % targets.len()].clone(),
            number,
            mode: arguments.mode,
            bare: arguments.bare,
            keep_alive: arguments.keep_alive,
            open: Arc::clone(&open),
        };
        members.spawn(member.live(Arc::clone(&gate), stopped.clone()));
    }
    drop(stopped);
    // The thread ends with the process or with standard input.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stop.send(true);
    });
    let mut summary = Summary::default();
    let mut say = tokio::time::interval(SAY_EVERY);
    loop {
        tokio::select! {
            joined = members.join_next() => match joined {
                Some(member) => summary.add(member.context("a stream's task ended early")?),
                None => break,
            },
            _ = say.tick() => {
                Said::Open { open: open.load(Ordering::Relaxed), failed: summary.failed() }.print()?;
            }
        }
    }
    Said::End(summary).print()
}

struct Member {
    target: Target,
    number: usize,
    mode: crate::mcp::Mode,
    bare: bool,
    keep_alive: Duration,
    open: Arc<AtomicUsize>,
}

impl Member {
    async fn live(self, gate: Arc<Semaphore>, mut stopped: watch::Receiver<bool>) -> Summary {
        let mut summary = Summary::default();
        let permit = gate.acquire_owned().await;
        if *stopped.borrow() {
            return summary;
        }
        let began = Instant::now();
        let opened = tokio::time::timeout(OPEN_TIMEOUT, self.start()).await;
        drop(permit);
        let reply = match opened {
            Ok(Ok(reply)) => reply,
            Ok(Err(failure)) => {
                summary.not_opened(&failure);
                return summary;
            }
            Err(_) => {
                summary.not_opened(&Failure::Transport("opening took too long".to_owned()));
                return summary;
            }
        };
        summary.opened(began.elapsed());
        self.open.fetch_add(1, Ordering::Relaxed);
        match reply {
            Some(reply) => self.watch(reply, &mut stopped, &mut summary).await,
            None => {
                let _ = stopped.wait_for(|stopped| *stopped).await;
            }
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
        summary
    }

    /// `None` for a bare session, which needs no connection.
    async fn start(&self) -> Result<Option<Reply>, Failure> {
        let source = source::address(self.number, self.target.address.ip());
        // Resetting avoids one TIME_WAIT per stream.
        let client =
            Client::open_with(source, &self.target, self.mode, Goodbye::Reset, "{}").await?;
        if self.bare {
            return Ok(None);
        }
        let reply = client.listen().await?;
        if reply.is_streamed() {
            Ok(Some(reply))
        } else {
            Err(Failure::Wrong("what should be a stream is none".to_owned()))
        }
    }

    async fn watch(
        &self,
        mut reply: Reply,
        stopped: &mut watch::Receiver<bool>,
        summary: &mut Summary,
    ) {
        let mut last = Instant::now();
        loop {
            let came = tokio::select! {
                came = reply.next_bytes() => came,
                _ = stopped.wait_for(|stopped| *stopped) => {
                    return summary.silence(last.elapsed(), self.keep_alive, LATE);
                }
            };
            summary.silence(last.elapsed(), self.keep_alive, LATE);
            match came {
                Ok(Some(_)) => {
                    summary.sign_of_life(last.elapsed());
                    last = Instant::now();
                }
                Ok(None) => return summary.dropped("the server ended the stream"),
                Err(failure) => return summary.dropped(&failure.to_string()),
            }
        }
    }
}
