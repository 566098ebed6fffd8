use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;

use super::child::{Family, Spawned};
use super::config::StdioConfig;
use super::writer;
use crate::upstream::{
    ConnectionBinding, Line, Lines, QUEUE, RequestOrigin, ServerConnection, ServerLink,
    ServerSubscriptions, quote,
};

/// How long to wait for the last output, because a descendant outside the group may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long to wait for the exit after a closed stream.
const EXIT_FOLLOWS: Duration = Duration::from_millis(250);
const STDERR_LINE: usize = 4096;

pub(super) fn attend(
    spawned: Spawned,
    config: &StdioConfig,
    binding: ConnectionBinding,
    subscriptions: Arc<ServerSubscriptions>,
    closing: &CancellationToken,
) -> ServerConnection {
    let Spawned {
        family,
        stdin,
        stdout,
        stderr,
    } = spawned;
    let (sender, queue) = mpsc::channel(QUEUE);
    let pid = family.pid();
    let name = format!("{} ({pid})", config.command);
    let timeout = config.request_timeout.get();
    let link = ServerLink::new(name.into(), sender, binding, subscriptions, timeout);
    let link = Arc::new(link);
    let stopping = closing.child_token();
    let ended = CancellationToken::new();
    let attendant = Attendant {
        link: link.clone(),
        pid,
        writer: tokio::spawn(writer::write(stdin, queue, stopping.clone())),
        reader: tokio::spawn(read(stdout, config.line_bytes, link.clone())),
        stderr: tokio::spawn(report(stderr, link.clone())),
        stopping: stopping.clone(),
        ended: ended.clone(),
        grace: config.shutdown_grace.get(),
    };
    tokio::spawn(attendant.attend(family));
    tracing::debug!(target: "shoal::stdio", pid, command = config.command, "server process started");
    ServerConnection::new(link, stopping, ended)
}

struct Attendant {
    link: Arc<ServerLink>,
    pid: u32,
    writer: JoinHandle<std::io::Result<()>>,
    reader: JoinHandle<()>,
    stderr: JoinHandle<()>,
    stopping: CancellationToken,
    ended: CancellationToken,
    grace: Duration,
}

impl Attendant {
    async fn attend(mut self, mut family: Family) {
        let first = tokio::select! {
            status = family.ended() => Sign::Ended(status),
            _ = &mut self.reader => Sign::Closed("output"),
            _ = &mut self.writer => Sign::Closed("input"),
            () = self.stopping.cancelled() => Sign::Stopping,
        };
        let sign = match first {
            Sign::Closed(_) if self.stopping.is_cancelled() => Sign::Stopping,
            // A closed stream is usually the first sign of an exit.
            Sign::Closed(stream) => tokio::time::timeout(EXIT_FOLLOWS, family.ended())
                .await
                .map_or(Sign::Closed(stream), Sign::Ended),
            other => other,
        };
        match sign {
            Sign::Ended(status) => {
                // Answers that came before the exit are valid.
                self.read_last_words().await;
                let reason = match status {
                    Ok(status) => format!("the server process ended ({status})"),
                    Err(error) => format!("the server process was lost: {error}"),
                };
                self.link.pending.end(reason.into());
            }
            Sign::Closed(stream) => {
                let reason = format!("the server closed its {stream}");
                self.link.pending.end(reason.into());
                self.stopping.cancel();
                family.end(self.grace).await;
            }
            Sign::Stopping => {
                family.end(self.grace).await;
                self.read_last_words().await;
            }
        }
        self.finish();
    }

    async fn read_last_words(&mut self) {
        let streams = [&mut self.reader, &mut self.stderr];
        let open = streams.into_iter().filter(|stream| !stream.is_finished());
        let _ = tokio::time::timeout(LAST_WORDS, join_all(open)).await;
    }

    fn finish(self) {
        self.stopping.cancel();
        self.reader.abort();
        self.stderr.abort();
        let pending = &self.link.pending;
        pending.end("the server process was shut down".into());
        let reason = pending.ended().unwrap_or_default();
        tracing::debug!(target: "shoal::stdio", pid = self.pid, %reason, "server process over");
        self.ended.cancel();
    }
}

enum Sign {
    Ended(std::io::Result<ExitStatus>),
    Closed(&'static str),
    Stopping,
}

async fn read(stdout: impl AsyncRead + Unpin, limit: usize, link: Arc<ServerLink>) {
    let mut lines = FramedRead::new(stdout, Lines::of_at_most(limit));
    while let Some(Ok(line)) = lines.next().await {
        link.receive(line, RequestOrigin::Common);
    }
}

/// Forwards stderr to the log, and keeps its last lines.
async fn report(stderr: impl AsyncRead + Unpin, link: Arc<ServerLink>) {
    let mut lines = FramedRead::new(stderr, Lines::of_at_most(STDERR_LINE));
    while let Some(Ok(line)) = lines.next().await {
        let text = match &line {
            Line::Whole(text) => String::from_utf8_lossy(text).into_owned(),
            Line::TooLong(ends) => quote(ends.head()),
        };
        if !text.trim().is_empty() {
            link.last_words.push(&text);
            tracing::debug!(target: "shoal::stdio", server = link.name(), "{text}");
        }
    }
}
