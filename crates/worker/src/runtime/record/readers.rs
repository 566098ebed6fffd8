use std::task::{Poll, Waker};

use parking_lot::MutexGuard;
use shoal_ports::{CallEvent, CallEventKind};

use super::{AttachedReader, CallRecord, RecordState, wake};

impl CallRecord {
    pub(in crate::runtime) fn attach(&self, after: u64) -> u64 {
        let mut state = self.state.lock();
        state.name = state.readers + 1;
        self.read_on(state, after)
    }

    /// Returns the reader's new number, or `None` if another one has attached.
    pub(in crate::runtime) fn reattach(&self, name: u64, after: u64) -> Option<u64> {
        let state = self.state.lock();
        (state.name == name).then(|| self.read_on(state, after))
    }

    fn read_on(&self, mut state: MutexGuard<'_, RecordState>, after: u64) -> u64 {
        state.events.renew_state(after);
        state.readers += 1;
        let number = state.readers;
        state.read = state.read.max(after.min(state.events.last()));
        let former = state.reader.replace(AttachedReader {
            number,
            read: after,
            waker: None,
            left: false,
        });
        drop(state);
        self.room.notify_waiters();
        wake(former.and_then(|reader| reader.waker));
        number
    }

    /// Detaches a reader that is too slow. Its events end, and it may attach again.
    pub(in crate::runtime) fn detach_slow_reader(&self) {
        let mut state = self.state.lock();
        let former = state.reader.take();
        drop(state);
        wake(former.and_then(|reader| reader.waker));
    }

    pub(in crate::runtime) fn poll_read(
        &self,
        number: u64,
        waker: &Waker,
    ) -> Poll<Option<CallEvent>> {
        let mut state = self.state.lock();
        let RecordState { events, reader, .. } = &mut *state;
        let Some(reader) = reader.as_mut().filter(|reader| reader.number == number) else {
            return Poll::Ready(None);
        };
        let Some(event) = events.next_after(reader.read).cloned() else {
            if events.has_ended() {
                return Poll::Ready(None);
            }
            match &mut reader.waker {
                Some(known) => known.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
            return Poll::Pending;
        };
        reader.read = event.sequence;
        state.read = state.read.max(event.sequence);
        let ended = matches!(event.kind, CallEventKind::Finished(_));
        state.delivered |= ended;
        let passing = ended && self.is_passing(&state);
        drop(state);
        if passing {
            if let Some(ledger) = self.ledger.upgrade() {
                ledger.forget(self.id);
            }
        } else if !ended {
            self.room.notify_waiters();
        }
        Poll::Ready(Some(event))
    }

    /// Returns whether the call is now deserted: it runs without a session, open question or later reader.
    pub(in crate::runtime) fn leave(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let deserted = state.readers == number
            && !self.is_of_session()
            && state.asks.is_empty()
            && !state.events.has_ended();
        let RecordState { events, reader, .. } = &mut *state;
        let Some(reader) = reader.as_mut().filter(|reader| reader.number == number) else {
            return deserted;
        };
        (reader.left, reader.waker) = (true, None);
        let undelivered = events.has_ended() && reader.read < events.last();
        let retire = undelivered && self.is_passing(&state);
        let bytes = state.events.bytes();
        drop(state);
        self.room.notify_waiters();
        if retire {
            self.retire(bytes);
        }
        deserted
    }

    pub(in crate::runtime) fn is_latest(&self, number: u64) -> bool {
        self.state.lock().readers == number
    }
}
