use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{Appended, Binding, CallId, CallProgress, DeliveryId, LoggedEvent, OpenStream};
use shoal_protocol::{EventId, RequestId, StreamId};
use tokio::sync::futures::Notified;
use tokio::sync::{MutexGuard, Notify};

use crate::call::OpenCall;

pub(crate) struct Tail {
    stream: StreamId,
    capacity: usize,
    writing: tokio::sync::Mutex<()>,
    delivery: Option<DeliveryId>,
    /// The position after which this node began to write.
    opened: EventId,
    state: Mutex<TailState>,
    changed: Notify,
    /// Connections that read: one, and for a short time also the one before it.
    readers: AtomicUsize,
}

struct TailState {
    recent: VecDeque<LoggedEvent>,
    calls: Vec<OpenCall>,
    /// The latest ended calls, at most as many as the recent events.
    ended: VecDeque<CallId>,
    /// Unlogged messages, each with the sequence after which it is sent. No text is in the queue
    /// twice.
    passing: VecDeque<(u64, Bytes)>,
    last: EventId,
    finished: bool,
    abandoned: bool,
    /// Only the newest reader, by this number, may read.
    reader: u64,
    /// The reader to close, and its client's pause before a reconnection.
    close: Option<(u64, Duration)>,
}

pub(crate) enum Next {
    Events(Vec<LoggedEvent>, bool),
    Passing(Vec<Bytes>),
    /// The reader must read this many events from the log first.
    Behind(usize),
    Nothing,
    Close(Duration),
    /// Another connection reads now, or the stream was abandoned.
    Over,
}

impl Tail {
    pub(super) fn new(last: EventId, delivery: Option<DeliveryId>, capacity: usize) -> Self {
        Self {
            stream: last.stream,
            capacity,
            writing: tokio::sync::Mutex::new(()),
            delivery,
            opened: last,
            state: Mutex::new(TailState {
                recent: VecDeque::new(),
                calls: Vec::new(),
                ended: VecDeque::new(),
                passing: VecDeque::new(),
                last,
                finished: false,
                abandoned: false,
                reader: 0,
                close: None,
            }),
            changed: Notify::new(),
            readers: AtomicUsize::new(0),
        }
    }

    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    pub(crate) fn last(&self) -> EventId {
        self.state.lock().last
    }

    pub(super) fn is_finished(&self) -> bool {
        self.state.lock().finished
    }

    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().await
    }

    pub(crate) fn enter(&self, calls: impl IntoIterator<Item = OpenCall>) {
        self.state.lock().calls.extend(calls);
    }

    pub(super) fn owes(&self, requests: &[RequestId]) -> bool {
        let state = self.state.lock();
        let mut calls = state.calls.iter();
        calls.any(|open| requests.contains(open.request()))
    }

    pub(super) fn rebound(&self, call: CallId, binding: &Binding) {
        let mut state = self.state.lock();
        if let Some(open) = state.calls.iter_mut().find(|open| open.id() == call) {
            open.rebind(binding.clone());
        }
    }

    /// Returns what this node knows about the stream, for a store that lost some of it. The caller must hold the
    /// [`turn`](Self::turn).
    pub(super) fn to_open_stream(&self) -> OpenStream {
        let state = self.state.lock();
        let last = state.last;
        let newest = state.recent.iter().rev();
        let newest = newest.take_while(|event| event.id.epoch == last.epoch);
        let mut newest: Vec<_> = newest.map(|event| event.data.clone()).collect();
        newest.reverse();
        OpenStream {
            last,
            newest,
            delivery: self.delivery,
            calls: state.calls.iter().map(OpenCall::to_journal).collect(),
            ended: state.ended.iter().copied().collect(),
        }
    }

    pub(super) fn goes_on_after(&self, cursor: EventId) -> bool {
        let state = self.state.lock();
        let first = state.recent.front().map(|event| event.id.sequence);
        match cursor.sequence {
            0 => cursor == self.opened && first.is_none_or(|first| first == 1),
            _ => cursor == state.last || state.recent.iter().any(|event| event.id == cursor),
        }
    }

    pub(super) fn beginning(&self) -> Option<EventId> {
        let state = self.state.lock();
        let first = state.recent.front().map_or(1, |event| event.id.sequence);
        (self.opened.sequence == 0 && first == 1).then_some(self.opened)
    }

    /// The tail has all events after this position.
    pub(super) fn before_recent(&self) -> Option<EventId> {
        let state = self.state.lock();
        let first = state.recent.front()?.id;
        let sequence = first.sequence.checked_sub(1)?;
        Some(EventId { sequence, ..first })
    }

    pub(super) fn opened_for(&self, delivery: DeliveryId) -> Option<EventId> {
        let begins = || EventId {
            sequence: 0,
            ..self.opened
        };
        (self.delivery == Some(delivery)).then(begins)
    }

    pub(super) fn extend(
        &self,
        events: Vec<Bytes>,
        progress: Option<CallProgress>,
        appended: Appended,
    ) {
        let Appended { last, finished, .. } = appended;
        let mut state = self.state.lock();
        match progress {
            Some(CallProgress {
                call, ended: true, ..
            }) => {
                state.calls.retain(|open| open.id() != call);
                if !finished {
                    state.ended.push_back(call);
                }
            }
            Some(CallProgress { call, seen, .. }) => {
                if let Some(open) = state.calls.iter_mut().find(|open| open.id() == call) {
                    open.note(seen);
                }
            }
            None => {}
        }
        let first = last.sequence + 1 - events.len() as u64;
        for (data, sequence) in events.into_iter().zip(first..) {
            let id = EventId { sequence, ..last };
            state.recent.push_back(LoggedEvent { id, data });
        }
        while state.recent.len() > self.capacity {
            state.recent.pop_front();
        }
        while state.ended.len() > self.capacity {
            state.ended.pop_front();
        }
        state.last = last;
        state.finished |= finished;
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn pass(&self, news: Vec<Bytes>) {
        let mut state = self.state.lock();
        let last = state.last.sequence;
        for data in news {
            state.passing.retain(|(_, waiting)| *waiting != data);
            state.passing.push_back((last, data));
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn abandon(&self) {
        self.state.lock().abandoned = true;
        self.changed.notify_waiters();
    }

    pub(super) fn take_over(&self) -> u64 {
        let mut state = self.state.lock();
        state.reader += 1;
        // For a new listener, the session logs the news that the client may not know.
        state.passing.clear();
        let reader = state.reader;
        drop(state);
        self.changed.notify_waiters();
        reader
    }

    /// Closes the present reader after the events so far (SEP-1699).
    pub(crate) fn close_reader(&self, retry: Duration) {
        let mut state = self.state.lock();
        state.close = Some((state.reader, retry));
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_read(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    pub(super) fn entered(&self) {
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn left(&self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn look_up(&self) {
        self.changed.notify_waiters();
    }

    /// Resolves at the first change after the caller has enabled the future.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(super) fn next(&self, reader: u64, cursor: EventId) -> Next {
        let mut state = self.state.lock();
        if state.reader != reader || state.abandoned {
            return Next::Over;
        }
        let due = |(after, _): &(u64, Bytes)| *after <= cursor.sequence;
        let passing = state.passing.iter().take_while(|one| due(one)).count();
        if passing > 0 {
            let passing = state.passing.drain(..passing);
            return Next::Passing(passing.map(|(_, data)| data).collect());
        }
        if cursor.sequence < state.last.sequence {
            let until = state
                .passing
                .front()
                .map_or(state.last.sequence, |(after, _)| *after);
            let oldest = state
                .recent
                .front()
                .map_or(u64::MAX, |event| event.id.sequence);
            if oldest > cursor.sequence + 1 {
                let events = until - cursor.sequence;
                return Next::Behind(usize::try_from(events).unwrap_or(usize::MAX));
            }
            let events: Vec<_> = state
                .recent
                .iter()
                .skip_while(|event| event.id.sequence <= cursor.sequence)
                .take_while(|event| event.id.sequence <= until)
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use shoal_ports::Appended;
    use shoal_protocol::{EventId, StreamId};

    use super::{Next, Tail};

    fn at(sequence: u64) -> EventId {
        EventId {
            epoch: 1,
            stream: StreamId::STANDALONE,
            sequence,
        }
    }

    fn append(tail: &Tail, until: u64) {
        let count = until - tail.last().sequence;
        let events = (0..count).map(|_| Bytes::from_static(b"{}")).collect();
        let appended = Appended {
            last: at(until),
            finished: false,
            kept: 0,
        };
        tail.extend(events, None, appended);
    }

    fn pass(tail: &Tail, news: &[&'static str]) {
        tail.pass(
            news.iter()
                .map(|text| Bytes::from_static(text.as_bytes()))
                .collect(),
        );
    }

    fn next(tail: &Tail, reader: u64, cursor: u64) -> String {
        match tail.next(reader, at(cursor)) {
            Next::Events(events, _) => {
                let ids: Vec<_> = events.iter().map(|event| event.id.sequence).collect();
                format!("events {ids:?}")
            }
            Next::Passing(news) => format!("passing {news:?}"),
            Next::Behind(events) => format!("behind {events}"),
            Next::Nothing => "nothing".to_owned(),
            Next::Close(_) => "close".to_owned(),
            Next::Over => "over".to_owned(),
        }
    }

    #[test]
    fn what_passes_keeps_its_place_among_events() {
        let tail = Tail::new(at(0), None, 4);
        let reader = tail.take_over();
        append(&tail, 2);
        pass(&tail, &["a", "b"]);
        append(&tail, 4);
        assert_eq!(next(&tail, reader, 0), "events [1, 2]");
        assert_eq!(next(&tail, reader, 2), "passing [b\"a\", b\"b\"]");
        assert_eq!(next(&tail, reader, 2), "events [3, 4]");
        assert_eq!(next(&tail, reader, 4), "nothing", "it comes once");
        pass(&tail, &["a"]);
        append(&tail, 9);
        assert_eq!(
            next(&tail, reader, 3),
            "behind 1",
            "and from the log likewise"
        );
        assert_eq!(next(&tail, reader, 4), "passing [b\"a\"]");
        assert_eq!(next(&tail, reader, 4), "behind 5");
    }

    #[test]
    fn the_same_again_waits_in_the_later_place() {
        let tail = Tail::new(at(0), None, 4);
        let reader = tail.take_over();
        pass(&tail, &["a", "b"]);
        append(&tail, 1);
        pass(&tail, &["a"]);
        assert_eq!(next(&tail, reader, 0), "passing [b\"b\"]");
        assert_eq!(next(&tail, reader, 0), "events [1]");
        assert_eq!(next(&tail, reader, 1), "passing [b\"a\"]");
    }

    #[test]
    fn what_passes_is_for_the_reader_that_there_is() {
        let tail = Tail::new(at(0), None, 4);
        let first = tail.take_over();
        pass(&tail, &["a"]);
        let second = tail.take_over();
        assert_eq!(next(&tail, first, 0), "over");
        assert_eq!(next(&tail, second, 0), "nothing");
    }
}
