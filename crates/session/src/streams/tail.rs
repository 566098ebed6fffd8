//! The newest events of a stream that is being written.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{Appended, LoggedEvent};
use shoal_protocol::{EventId, StreamId};
use tokio::sync::futures::Notified;
use tokio::sync::{MutexGuard, Notify};

/// A stream that is being written.
pub(crate) struct Tail {
    stream: StreamId,
    /// Events kept at hand.
    capacity: usize,
    writing: tokio::sync::Mutex<()>,
    state: Mutex<TailState>,
    changed: Notify,
}

struct TailState {
    recent: VecDeque<LoggedEvent>,
    last: EventId,
    finished: bool,
    abandoned: bool,
    /// Counts the stream's readers; only the newest may read.
    reader: u64,
    /// The reader that is asked to close, and when its client should come back.
    close: Option<(u64, Duration)>,
}

/// What a reader finds.
pub(crate) enum Next {
    /// Events; `true` when they reach the stream's end.
    Events(Vec<LoggedEvent>, bool),
    /// The reader is so far behind that it must ask the log.
    Behind,
    /// Nothing new yet.
    Nothing,
    /// Close the connection and say when to come back.
    Close(Duration),
    /// Another connection reads now, or the stream was given up.
    Over,
}

impl Tail {
    pub(super) fn new(last: EventId, capacity: usize) -> Self {
        Self {
            stream: last.stream,
            capacity,
            writing: tokio::sync::Mutex::new(()),
            state: Mutex::new(TailState {
                recent: VecDeque::new(),
                last,
                finished: false,
                abandoned: false,
                reader: 0,
                close: None,
            }),
            changed: Notify::new(),
        }
    }

    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    /// The id of the newest event.
    pub(crate) fn last(&self) -> EventId {
        self.state.lock().last
    }

    /// Waits for the right to append.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().await
    }

    /// Takes over what the log has accepted.
    pub(super) fn extend(&self, events: Vec<Bytes>, appended: Appended) {
        let Appended { last, finished } = appended;
        let mut state = self.state.lock();
        let first = last.sequence + 1 - events.len() as u64;
        for (data, sequence) in events.into_iter().zip(first..) {
            let id = EventId { sequence, ..last };
            state.recent.push_back(LoggedEvent { id, data });
        }
        while state.recent.len() > self.capacity {
            state.recent.pop_front();
        }
        state.last = last;
        state.finished |= finished;
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn abandon(&self) {
        self.state.lock().abandoned = true;
        self.changed.notify_waiters();
    }

    /// Makes the caller the stream's only reader.
    pub(super) fn take_over(&self) -> u64 {
        let mut state = self.state.lock();
        state.reader += 1;
        let reader = state.reader;
        drop(state);
        self.changed.notify_waiters();
        reader
    }

    /// Whether `reader` is the stream's reader still.
    pub(crate) fn is_read_by(&self, reader: u64) -> bool {
        self.state.lock().reader == reader
    }

    /// Asks the present reader to send what there is and close (SEP-1699).
    pub(crate) fn close_reader(&self, retry: Duration) {
        let mut state = self.state.lock();
        state.close = Some((state.reader, retry));
        drop(state);
        self.changed.notify_waiters();
    }

    /// Returns at the next change after it was enabled.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// What `reader` gets after `cursor`.
    pub(super) fn next(&self, reader: u64, cursor: EventId) -> Next {
        let state = self.state.lock();
        if state.reader != reader || state.abandoned {
            return Next::Over;
        }
        if cursor.sequence < state.last.sequence {
            let oldest = state
                .recent
                .front()
                .map_or(u64::MAX, |event| event.id.sequence);
            if oldest > cursor.sequence + 1 {
                return Next::Behind;
            }
            let events: Vec<_> = state
                .recent
                .iter()
                .skip_while(|event| event.id.sequence <= cursor.sequence)
                .cloned()
                .collect();
            return Next::Events(events, state.finished);
        }
        match state.close {
            _ if state.finished => Next::Events(Vec::new(), true),
            Some((closing, retry)) if closing == reader => Next::Close(retry),
            _ => Next::Nothing,
        }
    }
}
