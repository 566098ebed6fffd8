//! A live session's streams. An event is logged before a reader gets it. Other messages go only to
//! the present reader.
//!
//! A stream that this node writes has a [`Tail`] with its newest events. A reader that has fallen
//! behind pulls from the log instead, so slow readers cost little memory and delay no others.

mod counters;
mod forgotten;
mod gap;
mod lifecycle;
mod reader;
mod retry;
mod tail;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{
    Append, Appended, Backoff, Binding, CallId, CallProgress, DeliveryId, Epoch, EventStream,
    LogError, NodeId, Page, SessionId, Store, StoreError, StreamItem, lazy_channel,
};
use shoal_protocol::{EventId, RequestId, StreamId};
use shoal_telemetry::metrics::{self, ResumeOutcome, metrics};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use counters::StreamCounters;
pub(crate) use tail::Tail;

use crate::config::SessionConfig;
use crate::here::here_or_spawned;
use crate::live::LiveSession;
use crate::measure;
use crate::sessions::Node;
use crate::stored::Share;
use lifecycle::{Lifecycle, Turn};
use reader::Reader;

const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const MOST_RESTORED: u32 = 3;

pub(crate) struct SessionStreams {
    session: SessionId,
    epoch: Epoch,
    owner: NodeId,
    live: Weak<LiveSession>,
    store: Store,
    config: Arc<SessionConfig>,
    counters: Arc<StreamCounters>,
    tails: Mutex<HashMap<StreamId, Arc<Tail>>>,
    kept: AtomicU64,
    share: Arc<Share>,
    lifecycle: Lifecycle,
    /// Set when the node drains. Readers do not wait for it, so [`SessionStreams::look_up`] must wake them.
    draining: CancellationToken,
}

pub(crate) struct Attachment {
    stream: EventStream,
    reader: Reader,
    history: Vec<shoal_ports::LoggedEvent>,
    /// The stream is open, but this node does not write it. Another node may own the session.
    pub(crate) orphaned: bool,
    pub(crate) outcome: ResumeOutcome,
}

impl Attachment {
    pub(crate) fn generation(&self) -> u64 {
        self.reader.generation
    }

    pub(crate) fn without(mut self, gone: u64) -> Self {
        self.reader.gone = gone;
        self
    }

    pub(crate) fn start(self, until_gone: impl Send + 'static) -> EventStream {
        self.reader.enter();
        let all_there = (self.reader.tail.as_ref()).is_some_and(|tail| tail.is_finished());
        let reading = self.reader.run(self.history, until_gone);
        match all_there {
            true => here_or_spawned(reading),
            false => drop(tokio::spawn(reading)),
        }
        self.stream
    }
}

impl SessionStreams {
    pub(crate) fn new(
        node: &Node,
        (session, epoch): (SessionId, Epoch),
        live: Weak<LiveSession>,
        share: Arc<Share>,
    ) -> Self {
        Self {
            session,
            epoch,
            owner: node.id.clone(),
            live,
            store: node.driver.store.clone(),
            config: node.config.clone(),
            counters: node.counters.clone(),
            tails: Mutex::default(),
            kept: AtomicU64::new(0),
            share,
            lifecycle: Lifecycle::default(),
            draining: node.draining.clone(),
        }
    }

    pub(crate) fn begin(&self, last: EventId, delivery: Option<DeliveryId>) -> Arc<Tail> {
        let tail = Arc::new(Tail::new(last, delivery, self.config.streams.tail_events));
        self.tails.lock().insert(last.stream, tail.clone());
        tail
    }

    pub(crate) async fn standalone(&self) -> Result<Arc<Tail>, LogError> {
        let id = StreamId::STANDALONE;
        if let Some(tail) = self.tails.lock().get(&id) {
            return Ok(tail.clone());
        }
        let last = self.store.log.last(&self.session, id).await?;
        let mut tails = self.tails.lock();
        let tail = tails
            .entry(id)
            .or_insert_with(|| Arc::new(Tail::new(last, None, self.config.streams.tail_events)));
        Ok(tail.clone())
    }

    /// Logs events, then shows them to the stream's reader. Retries during an outage.
    ///
    /// Not cancellation safe: call it in a task of its own.
    pub(crate) async fn append(
        &self,
        tail: &Tail,
        events: Vec<Bytes>,
        progress: Option<CallProgress>,
    ) -> Result<(), LogError> {
        self.write(
            tail,
            events,
            progress,
            self.config.streams.store_patience.get(),
        )
        .await
    }

    /// Sends messages to the present reader, after the events so far, without logging them. A message that already
    /// waits moves to the end.
    pub(crate) fn pass(&self, news: Vec<Bytes>) {
        if let Some(tail) = self.tails.lock().get(&StreamId::STANDALONE) {
            metrics().streams.passed(news.len() as u64);
            tail.pass(news);
        }
    }

    /// Appends events without retrying during an outage. Completes even if the future is dropped.
    pub(crate) async fn append_now(
        self: &Arc<Self>,
        tail: &Arc<Tail>,
        events: Vec<Bytes>,
    ) -> Result<(), LogError> {
        let (streams, tail) = (self.clone(), tail.clone());
        let writing =
            tokio::spawn(async move { streams.write(&tail, events, None, Duration::ZERO).await });
        writing.await.unwrap_or_else(|error| {
            let reason = format!("the internal task that appends events failed: {error}");
            Err(LogError::Store(StoreError::Unavailable(reason)))
        })
    }

    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    pub(crate) fn delivered(&self, delivery: DeliveryId) -> Option<EventId> {
        let tails = self.tails.lock();
        tails.values().find_map(|tail| tail.opened_for(delivery))
    }

    /// Whether a call of one of the requests still owes its answer to the standalone stream.
    pub(crate) fn owes(&self, requests: &[RequestId]) -> bool {
        let tails = self.tails.lock();
        let standalone = tails.get(&StreamId::STANDALONE);
        standalone.is_some_and(|tail| tail.owes(requests))
    }

    pub(crate) fn rebound(&self, call: CallId, binding: &Binding) {
        for tail in self.tails.lock().values() {
            tail.rebound(call, binding);
        }
    }

    async fn write(
        &self,
        tail: &Tail,
        events: Vec<Bytes>,
        progress: Option<CallProgress>,
        patience: Duration,
    ) -> Result<(), LogError> {
        // A call's end is appended even at the limit, because the call could not end otherwise.
        if !progress.is_some_and(|progress| progress.ended) && self.share.check().is_err() {
            let full = "its principal or the node has reached the limit on stored bytes";
            return Err(StoreError::Full(full).into());
        }
        // This lock keeps tail and log in the same order.
        let _turn = tail.turn().await;
        let size = || events.iter().map(Bytes::len).sum();
        let size = (events.len(), if metrics::enabled() { size() } else { 0 });
        let append = Append {
            after: tail.last(),
            events: events.clone(),
            progress,
        };
        let since = Instant::now();
        let appended = self.write_surely(tail, append, since + patience).await;
        measure::appended(since, size, &appended);
        let appended = appended?;
        self.kept.store(appended.kept, Ordering::Relaxed);
        tail.extend(events, progress, appended);
        self.share.set_log(appended.kept);
        if appended.finished {
            self.tails.lock().remove(&tail.stream());
        }
        Ok(())
    }

    /// Retries during an outage. The caller holds the tail's turn.
    async fn write_surely(
        &self,
        tail: &Tail,
        append: Append,
        until: Instant,
    ) -> Result<Appended, LogError> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut restored = 0;
        loop {
            if self.is_lost() {
                return Err(StoreError::Stale.into());
            }
            let appended = self
                .store
                .log
                .append(&self.session, self.epoch, append.clone());
            let mut appended = appended.await;
            if appended == Err(StoreError::Forgotten.into()) && restored < MOST_RESTORED {
                restored += 1;
                match self.restore(tail).await {
                    Ok(()) => continue,
                    Err(error) => appended = Err(error.into()),
                }
            }
            match appended {
                Err(LogError::Store(error)) if error.is_outage() && Instant::now() < until => {
                    tokio::select! {
                        () = tokio::time::sleep(backoff.pause()) => {}
                        () = self.lifecycle.until(Turn::LOST) => {}
                        () = self.lifecycle.until(Turn::ENDED) => return Err(StoreError::NotFound.into()),
                    }
                }
                Err(LogError::Store(StoreError::Stale)) => {
                    self.lose();
                    return Err(StoreError::Stale.into());
                }
                Err(LogError::Store(StoreError::NotFound)) => {
                    self.end();
                    return Err(StoreError::NotFound.into());
                }
                appended => return appended,
            }
        }
    }

    /// The stream's reader resumes from the log.
    pub(crate) fn abandon(&self, tail: &Tail) {
        tail.abandon();
        self.tails.lock().remove(&tail.stream());
    }

    /// Replaces the previous reader.
    pub(crate) fn read_live(
        self: &Arc<Self>,
        tail: Arc<Tail>,
        cursor: EventId,
        prime: bool,
    ) -> Attachment {
        let generation = tail.take_over();
        self.attach(Some(tail), generation, cursor, Vec::new(), prime)
    }

    /// Fails with `Gone` if the log lacks the next events.
    pub(crate) async fn resume(
        self: &Arc<Self>,
        cursor: EventId,
        prime: bool,
    ) -> Result<Attachment, LogError> {
        let live = if cursor.stream == StreamId::STANDALONE {
            Some(self.standalone().await?)
        } else {
            self.tails.lock().get(&cursor.stream).cloned()
        };
        // The log is read after the tail was looked up: a stream that has just lost its tail then reads as finished.
        let page = self
            .store
            .log
            .read(&self.session, cursor, self.config.streams.buffer)
            .await;
        let page = match (page, &live) {
            // The store has lost events, but the tail still has them.
            (Err(LogError::Gone(_)), Some(tail)) if tail.goes_on_after(cursor) => Ok(Page {
                events: Vec::new(),
                finished: false,
            }),
            (page, _) => page,
        };
        let page = page.inspect_err(|error| {
            if matches!(error, LogError::Gone(_)) {
                self.counters.gone.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        let at_end = page.events.len() < self.config.streams.buffer;
        let orphaned = live.is_none() && !page.finished && at_end;
        self.counters.resumed.fetch_add(1, Ordering::Relaxed);
        let generation = live.as_ref().map_or(0, |tail| tail.take_over());
        let outcome = match (page.events.is_empty(), page.finished) {
            (false, _) => ResumeOutcome::Replayed,
            (true, true) => ResumeOutcome::Ended,
            (true, false) => ResumeOutcome::Continued,
        };
        Ok(Attachment {
            orphaned,
            outcome,
            ..self.attach(live, generation, cursor, page.events, prime)
        })
    }

    fn attach(
        self: &Arc<Self>,
        tail: Option<Arc<Tail>>,
        generation: u64,
        cursor: EventId,
        history: Vec<shoal_ports::LoggedEvent>,
        prime: bool,
    ) -> Attachment {
        let (sender, items) = lazy_channel(self.config.streams.buffer);
        if prime {
            // Sent before the reader starts, so that it is the first item.
            let _ = sender.try_send(StreamItem::Prime { id: cursor });
        }
        let reader = Reader {
            streams: self.clone(),
            tail,
            generation,
            cursor,
            gone: 0,
            sender,
        };
        Attachment {
            stream: EventStream {
                items: items.into(),
                cursor,
            },
            reader,
            history,
            orphaned: false,
            outcome: ResumeOutcome::Continued,
        }
    }

    fn retry(&self) -> Duration {
        let config = &self.config;
        retry::retry_of(
            &self.session,
            config.streams.retry.get(),
            config.streams.retry_spread.get(),
        )
    }

    async fn read_surely(&self, cursor: EventId, limit: usize) -> Result<Page, LogError> {
        let until = Instant::now() + self.config.streams.store_patience.get();
        loop {
            let page = self.store.log.read(&self.session, cursor, limit).await;
            let away = matches!(&page, Err(LogError::Store(error)) if error.is_outage());
            if !away || Instant::now() >= until {
                return page;
            }
            tokio::select! {
                () = tokio::time::sleep(LONGEST_PAUSE) => {}
                () = self.lifecycle.until(Turn::ENDED.or(Turn::MOVED)) => return page,
            }
        }
    }

    /// Readers stay until the session has moved.
    pub(crate) fn stop_writing(&self) {
        self.lifecycle.set(Turn::LOST);
    }

    pub(crate) fn lose(&self) {
        self.lifecycle.set(Turn::LOST.or(Turn::MOVED));
        self.look_up();
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lifecycle.is(Turn::LOST)
    }

    pub(crate) fn begin_end(&self, why: &'static str) {
        self.lifecycle.end_because(why);
    }

    pub(crate) fn why_ending(&self) -> &'static str {
        self.lifecycle.why_ending()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.lifecycle.is(Turn::ENDING.or(Turn::ENDED))
    }

    /// Cancellation safe.
    pub(crate) async fn until_over(&self) {
        let over = Turn::ENDING.or(Turn::ENDED).or(Turn::LOST);
        self.lifecycle.until(over).await;
    }

    /// Wakes all readers to check flags, because readers wait only for changes of their tails.
    pub(crate) fn look_up(&self) {
        for tail in self.tails.lock().values() {
            tail.look_up();
        }
    }

    pub(crate) fn open(&self) -> Vec<Arc<Tail>> {
        let mut open: Vec<_> = self.tails.lock().values().cloned().collect();
        open.sort_unstable_by_key(|tail| tail.stream());
        open
    }

    pub(crate) fn is_quiet(&self) -> bool {
        let tails = self.tails.lock();
        tails.keys().all(|stream| *stream == StreamId::STANDALONE)
    }

    pub(crate) fn count(&self) -> usize {
        self.tails.lock().len()
    }

    pub(crate) fn end(&self) {
        self.lifecycle.set(Turn::ENDED);
        self.look_up();
    }
}
