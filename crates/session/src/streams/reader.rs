use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::Either;
use shoal_ports::{LazySender, LogError, LoggedEvent, NobodyReceives, Page, StreamItem, Unsent};
use shoal_protocol::{EventId, StreamId};
use shoal_telemetry::metrics::metrics;
use tokio::time::timeout;

use super::SessionStreams;
use super::lifecycle::Turn;
use super::tail::{Next, Tail};

pub(super) struct Reader {
    pub(super) streams: Arc<SessionStreams>,
    /// `None` if the stream has finished.
    pub(super) tail: Option<Arc<Tail>>,
    pub(super) generation: u64,
    pub(super) cursor: EventId,
    /// Events missing before the cursor. The client must be told.
    pub(super) gone: u64,
    pub(super) sender: LazySender<StreamItem>,
}

const LARGE: usize = 64 << 10;

fn is_large(item: &StreamItem) -> bool {
    matches!(item, StreamItem::Event { data, .. } | StreamItem::Passing { data } if data.len() > LARGE)
}

struct ReaderGone;

impl Reader {
    pub(super) fn enter(&self) {
        self.streams.counters.open.fetch_add(1, Ordering::Relaxed);
        if let Some(tail) = &self.tail {
            tail.entered();
        }
    }

    /// The future is small, because it waits most of the time: rare paths are boxed, and parameters are stored once.
    #[allow(
        clippy::manual_async_fn,
        reason = "an async fn keeps its parameters twice: 128 bytes more for each stream"
    )]
    pub(super) fn run(
        mut self,
        history: Vec<LoggedEvent>,
        until_gone: impl Send,
    ) -> impl Future<Output = ()> + Send {
        async move {
            if self.gone > 0 {
                let _ = Box::pin(self.tell_of_gap()).await;
            }
            // If the connection is gone, the client resumes from the log.
            let caught_up = match &self.tail {
                Some(_) if history.is_empty() => true,
                _ => Box::pin(self.catch_up(history)).await.is_ok(),
            };
            if caught_up {
                let _ = self.follow().await;
            }
            if let Some(tail) = &self.tail {
                tail.left();
            }
            self.streams.counters.open.fetch_sub(1, Ordering::Relaxed);
            drop(until_gone);
        }
    }

    async fn catch_up(&mut self, history: Vec<LoggedEvent>) -> Result<(), ReaderGone> {
        self.send_all(history).await?;
        match self.tail {
            Some(_) => Ok(()),
            None => self.read_log_to_end().await,
        }
    }

    async fn follow(&mut self) -> Result<(), ReaderGone> {
        let Some(tail) = self.tail.clone() else {
            return Ok(());
        };
        loop {
            let mut changed = pin!(tail.changed());
            changed.as_mut().enable();
            match tail.next(self.generation, self.cursor) {
                Next::Events(events, finished) => {
                    self.send_all(events).await?;
                    if finished {
                        return Ok(());
                    }
                }
                Next::Passing(news) => {
                    for data in news {
                        self.send(StreamItem::Passing { data }).await?;
                    }
                }
                Next::Behind(events) => Box::pin(self.read_log(events)).await.map(drop)?,
                Next::Close(retry) => return self.send(StreamItem::Retry(retry)).await,
                Next::Over => return Ok(()),
                Next::Nothing => {
                    if let Some(last) = self.last_words() {
                        return match last {
                            Some(item) => self.send(item).await,
                            None => Ok(()),
                        };
                    }
                    tokio::select! {
                        () = changed => {}
                        () = self.sender.closed() => return Err(ReaderGone),
                    }
                }
            }
        }
    }

    /// `Some` if the stream ends here, with its last item, if any: the session has ended or moved, or the node
    /// drains.
    fn last_words(&self) -> Option<Option<StreamItem>> {
        let streams = &self.streams;
        if streams.lifecycle.is(Turn::ENDED) {
            return Some(None);
        }
        if streams.lifecycle.is(Turn::MOVED) {
            return Some(Some(StreamItem::Moved));
        }
        // Only standalone streams, because a drain waits for the answers on calls' streams.
        let standalone = self.cursor.stream == StreamId::STANDALONE;
        if standalone && streams.draining.is_cancelled() {
            return Some(Some(StreamItem::Retry(streams.retry())));
        }
        None
    }

    async fn read_log_to_end(&mut self) -> Result<(), ReaderGone> {
        while !self.read_log(usize::MAX).await? {}
        Ok(())
    }

    /// Returns whether the log has no more events for this reader.
    async fn read_log(&mut self, events: usize) -> Result<bool, ReaderGone> {
        let streams = self.streams.clone();
        let limit = streams.config.streams.buffer.min(events);
        let page = streams.read_surely(self.cursor, limit).await;
        match (page, &self.tail) {
            // The log lost or trimmed the next events.
            (Ok(Page { events, .. }), Some(tail)) if events.is_empty() => {
                self.skip_gap(&tail.clone()).await
            }
            (Err(LogError::Gone(_)), Some(tail)) => self.skip_gap(&tail.clone()).await,
            (Ok(page), _) => {
                let over = page.finished || page.events.is_empty();
                self.send_all(page.events).await?;
                Ok(over)
            }
            (Err(error), _) => {
                // The client gets the reason when it resumes.
                tracing::warn!(session = %streams.session, %error, "cannot continue reading a stream");
                Err(ReaderGone)
            }
        }
    }

    async fn skip_gap(&mut self, tail: &Tail) -> Result<bool, ReaderGone> {
        let streams = self.streams.clone();
        let Some(after) = streams.after_gap(tail, self.cursor).await else {
            tracing::warn!(session = %streams.session, "cannot continue reading a stream: events are gone");
            return Err(ReaderGone);
        };
        self.gone = after.sequence - self.cursor.sequence;
        self.cursor = after;
        self.tell_of_gap().await.map(|()| false)
    }

    async fn tell_of_gap(&mut self) -> Result<(), ReaderGone> {
        let gone = std::mem::take(&mut self.gone);
        match self.streams.gap_notice(gone) {
            Some(data) => self.send(StreamItem::Passing { data }).await,
            None => Ok(()),
        }
    }

    async fn send_all(&mut self, events: Vec<LoggedEvent>) -> Result<(), ReaderGone> {
        for LoggedEvent { id, data } in events {
            self.send(StreamItem::Event { id, data }).await?;
            self.cursor = id;
        }
        Ok(())
    }

    /// Sends an item. The future does not contain the item unless the reader is slow, and so stays small.
    fn send(&self, item: StreamItem) -> impl Future<Output = Result<(), ReaderGone>> + Send {
        // Large events wait one at a time to save memory.
        if is_large(&item) && !self.sender.is_drained() {
            return Either::Right(Box::pin(self.send_to_slow(item)));
        }
        match self.sender.try_send(item) {
            Ok(()) => Either::Left(ready(Ok(()))),
            Err(Unsent::NobodyReceives(_)) => Either::Left(ready(Err(ReaderGone))),
            Err(Unsent::Full(item)) => Either::Right(Box::pin(self.send_to_slow(item))),
        }
    }

    async fn send_to_slow(&self, item: StreamItem) -> Result<(), ReaderGone> {
        let sending = async {
            if is_large(&item) {
                self.sender.drained().await;
            }
            self.sender.send(item).await
        };
        match timeout(self.streams.config.streams.stall.get(), sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(NobodyReceives)) => Err(ReaderGone),
            Err(_) => {
                self.streams.counters.cut.fetch_add(1, Ordering::Relaxed);
                metrics().streams.cut();
                tracing::info!(session = %self.streams.session, stream = %self.cursor.stream,
                    "closed a connection whose client does not read; the client can resume");
                Err(ReaderGone)
            }
        }
    }
}
