//! The streams of a live session: every event is appended to the log before any reader gets it.
//!
//! A stream that is being written has a [`Tail`]: its newest events, at hand for its reader. A reader
//! pulls: from the tail while it keeps up, from the log when it has fallen behind. So nothing is ever
//! buffered for a reader beyond its connection's small channel, and a slow one delays nobody.

mod reader;
mod tail;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{Epoch, EventLog, EventStream, LogError, SessionId};
use shoal_protocol::{EventId, StreamId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use tail::Tail;

use crate::config::SessionConfig;
use reader::Reader;

/// Counts over all streams of a node.
#[derive(Debug, Default)]
pub(crate) struct StreamCounters {
    /// Connections that read a stream now.
    pub(crate) open: AtomicUsize,
    /// Streams resumed.
    pub(crate) resumed: AtomicUsize,
    /// Resumes refused because history was gone.
    pub(crate) gone: AtomicUsize,
    /// Connections cut because they did not read.
    pub(crate) cut: AtomicUsize,
}

/// The streams of one session.
pub(crate) struct Streams {
    session: SessionId,
    epoch: Epoch,
    log: Arc<dyn EventLog>,
    config: Arc<SessionConfig>,
    counters: Arc<StreamCounters>,
    tails: Mutex<HashMap<StreamId, Arc<Tail>>>,
    /// Fires when the session ends.
    ended: CancellationToken,
    /// Fires when the node drains.
    draining: CancellationToken,
}

/// What a connection reads.
pub(crate) struct Attachment {
    /// The connection's end.
    pub(crate) stream: EventStream,
    /// Which reader of its stream this is.
    pub(crate) generation: u64,
    /// Finishes when the connection is gone.
    pub(crate) reading: tokio::task::JoinHandle<()>,
}

impl Streams {
    pub(crate) fn new(
        session: SessionId,
        epoch: Epoch,
        log: Arc<dyn EventLog>,
        config: Arc<SessionConfig>,
        counters: Arc<StreamCounters>,
        draining: CancellationToken,
    ) -> Self {
        Self {
            session,
            epoch,
            log,
            config,
            counters,
            tails: Mutex::default(),
            ended: CancellationToken::new(),
            draining,
        }
    }

    /// A stream that the log has just opened; it ends with the answer to the last of `answers` requests.
    pub(crate) fn begin(&self, beginning: EventId, answers: usize) -> Arc<Tail> {
        let tail = Arc::new(Tail::new(beginning, Some(answers), self.config.tail_events));
        self.tails.lock().insert(beginning.stream, tail.clone());
        tail
    }

    /// The standalone stream, which never ends.
    pub(crate) async fn standalone(&self) -> Result<Arc<Tail>, LogError> {
        let id = StreamId::STANDALONE;
        if let Some(tail) = self.tails.lock().get(&id) {
            return Ok(tail.clone());
        }
        // Where the stream stands: an append of nothing tells.
        let last = self
            .log
            .append(&self.session, self.epoch, id, Vec::new(), false)
            .await?
            .last;
        let mut tails = self.tails.lock();
        let tail = tails
            .entry(id)
            .or_insert_with(|| Arc::new(Tail::new(last, None, self.config.tail_events)));
        Ok(tail.clone())
    }

    /// Appends events, then lets the reader have them.
    pub(crate) async fn append(&self, tail: &Tail, events: Vec<Bytes>) -> Result<(), LogError> {
        self.write(tail, events, 0).await
    }

    /// Appends the answer to a request, which may be the stream's last event.
    pub(crate) async fn append_answer(
        &self,
        tail: &Tail,
        events: Vec<Bytes>,
    ) -> Result<(), LogError> {
        self.write(tail, events, 1).await
    }

    async fn write(&self, tail: &Tail, events: Vec<Bytes>, answers: usize) -> Result<(), LogError> {
        // Held across the append so that the tail's order is the log's order.
        let _turn = tail.turn().await;
        let end = tail.is_last_answer(answers);
        let stream = tail.stream();
        let appended = self
            .log
            .append(&self.session, self.epoch, stream, events.clone(), end)
            .await?;
        tail.extend(events, appended.last, answers);
        if end {
            self.tails.lock().remove(&stream);
        }
        Ok(())
    }

    /// Gives a stream up whose answer cannot be written: its reader is cut, and a resume will find what
    /// the log has.
    pub(crate) fn abandon(&self, tail: &Tail) {
        tail.abandon();
        self.tails.lock().remove(&tail.stream());
    }

    /// Attaches a connection to a stream that is being written, after `cursor`. The stream's reader
    /// before ends.
    pub(crate) fn read_live(
        self: &Arc<Self>,
        tail: Arc<Tail>,
        cursor: EventId,
        prime: bool,
    ) -> Attachment {
        let generation = tail.take_over();
        self.spawn(Some(tail), generation, cursor, Vec::new(), prime)
    }

    /// Attaches a connection to any stream, after `cursor`.
    ///
    /// # Errors
    /// `Gone` when events after the cursor are no longer there.
    pub(crate) async fn resume(self: &Arc<Self>, cursor: EventId) -> Result<Attachment, LogError> {
        let live = if cursor.stream == StreamId::STANDALONE {
            Some(self.standalone().await?)
        } else {
            self.tails.lock().get(&cursor.stream).cloned()
        };
        // Read after looking for the tail: a stream without one must read as finished.
        let page = self
            .log
            .read(&self.session, cursor, self.config.reader_buffer)
            .await;
        let page = page.inspect_err(|error| {
            if matches!(error, LogError::Gone(_)) {
                self.counters.gone.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        self.counters.resumed.fetch_add(1, Ordering::Relaxed);
        let generation = live.as_ref().map_or(0, |tail| tail.take_over());
        Ok(self.spawn(live, generation, cursor, page.events, false))
    }

    fn spawn(
        self: &Arc<Self>,
        tail: Option<Arc<Tail>>,
        generation: u64,
        cursor: EventId,
        history: Vec<shoal_ports::LoggedEvent>,
        prime: bool,
    ) -> Attachment {
        let (sender, items) = mpsc::channel(self.config.reader_buffer);
        let reader = Reader {
            streams: self.clone(),
            tail,
            generation,
            cursor,
            sender,
        };
        let reading = tokio::spawn(reader.run(history, prime));
        Attachment {
            stream: EventStream { items },
            generation,
            reading,
        }
    }

    /// Cuts every connection: the session is over.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }
}
