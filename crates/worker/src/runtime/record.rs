//! The state of one call: its events, open questions and reader.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{
    AskId, Call, CallEventKind, CallFailure, CallId, CallOutcome, Caller, Epoch, LogFilter, Repeat,
};
use shoal_protocol::{Method, Outcome, RawJson, TraceContext};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::event_buffer::EventBuffer;
use super::ledger::Ledger;
use super::slot::ActorSlot;

mod readers;

/// Events that a reader may lag behind before the tool waits for it.
const UNREAD_EVENTS: u64 = 64;
/// Answered questions remembered, because the acknowledgement of an answer may be lost.
const ANSWERED: usize = 128;

/// One call, from its admission until the worker forgets it.
pub(super) struct CallRecord {
    pub(super) id: CallId,
    pub(super) caller: Arc<Caller>,
    pub(super) log: LogFilter,
    pub(super) method: Method,
    pub(super) admitted: Instant,
    pub(super) cancelled: CancellationToken,
    repeat: Repeat,
    begun: AtomicBool,
    /// The epoch of the latest session owner that took over a call which began without a session
    /// and became a task; 0 if none.
    adopted: AtomicU64,
    span: OnceLock<TraceContext>,
    ledger: Weak<Ledger>,
    state: Mutex<RecordState>,
    room: Notify,
    pub(super) slot: ActorSlot,
    /// Orders the requests to the session as the tool made them.
    pub(super) state_turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct RecordState {
    events: EventBuffer,
    reader: Option<AttachedReader>,
    readers: u64,
    /// The newest event that any reader has received.
    read: u64,
    /// The latest reader's first number, which is its name.
    name: u64,
    asks: Vec<(AskId, oneshot::Sender<Outcome>)>,
    asked: u64,
    answered: VecDeque<AskId>,
    /// For the log, while the call runs.
    params: Option<RawJson>,
    kept: bool,
    delivered: bool,
    /// Whether the call was stopped and may run again: its client may send it once more.
    withdrawn: bool,
}

/// The present reader. A later reader takes over because the earlier connection is probably broken.
struct AttachedReader {
    number: u64,
    read: u64,
    waker: Option<Waker>,
    /// Whether the reader left. It may return, so the tool waits for it.
    left: bool,
}

pub(super) enum Offered {
    Taken,
    Ended,
    Full(CallEventKind),
}

impl CallRecord {
    pub(super) fn runs_in(&self, span: Option<&TraceContext>) {
        if let Some(span) = span {
            // Set only once, when the call is entered.
            let _ = self.span.set(span.clone());
        }
    }

    pub(super) fn runs(&self) -> Option<&TraceContext> {
        self.span.get()
    }

    pub(super) fn new(call: &Call, ledger: Weak<Ledger>, kept: bool) -> Arc<Self> {
        Arc::new(Self {
            id: call.id,
            caller: Arc::clone(&call.caller),
            log: call.log,
            method: call.method.clone(),
            admitted: Instant::now(),
            cancelled: CancellationToken::new(),
            repeat: call.repeat,
            begun: AtomicBool::new(false),
            adopted: AtomicU64::new(0),
            span: OnceLock::new(),
            ledger,
            state: Mutex::new(RecordState {
                params: call.params.clone(),
                kept,
                ..RecordState::default()
            }),
            room: Notify::new(),
            slot: ActorSlot::default(),
            state_turn: tokio::sync::Mutex::new(()),
        })
    }

    pub(super) fn is_kept(&self) -> bool {
        self.state.lock().kept
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().events.has_ended()
    }

    /// Whether a reader may still come for the undelivered end: the session's next owner, or a
    /// reader whose link broke.
    pub(super) fn awaits_reader(&self) -> bool {
        let state = self.state.lock();
        let wanted = self.is_of_session() || !self.cancelled.is_cancelled();
        wanted && state.events.has_ended() && !state.delivered
    }

    /// Checks a new reader: a session owner with its epoch, or the caller of a call without a
    /// session.
    ///
    /// # Errors
    /// `Superseded` if a later owner took the call. A resent request without an epoch cannot
    /// reclaim a call that became a task.
    pub(super) fn adopt(&self, epoch: Option<Epoch>) -> Result<(), CallFailure> {
        if self.caller.session.is_some() {
            return Ok(());
        }
        let (epoch, order) = (epoch.map_or(0, |epoch| epoch.0), Ordering::Relaxed);
        match self.adopted.fetch_max(epoch, order) {
            latest if latest > epoch => Err(CallFailure::Superseded {
                epoch: Epoch(latest),
            }),
            _ => Ok(()),
        }
    }

    /// Whether a session owner may take over the call.
    fn is_of_session(&self) -> bool {
        self.caller.session.is_some() || self.adopted.load(Ordering::Relaxed) > 0
    }

    pub(super) fn deliver(&self) {
        self.state.lock().delivered = true;
    }

    pub(super) fn waits(&self) -> bool {
        !self.begun.load(Ordering::Relaxed) && !self.has_ended()
    }

    /// Marks the call as visible to the tool. Returns `false` if the call has ended.
    pub(super) fn begin(&self) -> bool {
        // The lock that ends the call is held, so that an ended call's flag is final.
        let state = self.state.lock();
        let begins = !state.events.has_ended();
        if begins {
            self.begun.store(true, Ordering::Relaxed);
        }
        begins
    }

    /// Reverts `begin` while the backend waits. Returns `false` if the call has ended.
    pub(super) fn pause(&self) -> bool {
        let state = self.state.lock();
        let waits = !state.events.has_ended();
        if waits {
            self.begun.store(false, Ordering::Relaxed);
        }
        waits
    }

    pub(super) fn is_once(&self) -> bool {
        self.repeat == Repeat::Never
    }

    /// Why a call that must not repeat ended without having run.
    pub(super) fn refused(&self) -> Option<CallFailure> {
        if !self.is_once() || self.begun.load(Ordering::Relaxed) {
            return None;
        }
        match self.ended() {
            Some(CallOutcome::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The failure for a call that ends without its tool's answer.
    pub(super) fn lost(&self, reason: &str) -> CallFailure {
        let reason = reason.to_owned();
        if self.begun.load(Ordering::Relaxed) {
            CallFailure::OutcomeUnknown { reason }
        } else {
            CallFailure::NotExecuted { reason }
        }
    }

    pub(super) fn params(&self) -> Option<RawJson> {
        self.state.lock().params.clone()
    }

    pub(super) fn offer(&self, kind: CallEventKind) -> Offered {
        let mut state = self.state.lock();
        if state.events.has_ended() {
            return Offered::Ended;
        }
        if let Some(read) = state.reader.as_ref().map(|reader| reader.read) {
            let behind = state.events.last() - read.min(state.events.last());
            if behind >= UNREAD_EVENTS || !state.events.has_room(read) {
                return Offered::Full(kind);
            }
        }
        let waker = state.push(kind);
        drop(state);
        wake(waker);
        Offered::Taken
    }

    /// Waits up to `patience` until the reader reads an event, leaves or is replaced after `offer`
    /// returned `Full`. Returns whether it did so.
    pub(super) async fn room(&self, patience: Duration) -> bool {
        let room = self.room.notified();
        tokio::pin!(room);
        room.as_mut().enable();
        // `enable` misses what happened since the offer, so check again.
        if !self.is_full() {
            return true;
        }
        tokio::time::timeout(patience, room).await.is_ok()
    }

    fn is_full(&self) -> bool {
        let mut state = self.state.lock();
        let Some(read) = state.reader.as_ref().map(|reader| reader.read) else {
            return false;
        };
        let behind = state.events.last() - read.min(state.events.last());
        !state.events.has_ended() && (behind >= UNREAD_EVENTS || !state.events.has_room(read))
    }

    /// Opens a question that `kind` builds from its number. The receiver closes if the call ends
    /// first.
    pub(super) fn open_ask(
        &self,
        kind: impl FnOnce(AskId) -> CallEventKind,
        limit: usize,
    ) -> Option<(AskId, oneshot::Receiver<Outcome>)> {
        let mut state = self.state.lock();
        if state.events.has_ended() || state.asks.len() >= limit {
            return None;
        }
        state.asked += 1;
        let ask = AskId(state.asked);
        let (answer, answered) = oneshot::channel();
        state.asks.push((ask, answer));
        let waker = state.push(kind(ask));
        drop(state);
        wake(waker);
        Some((ask, answered))
    }

    pub(super) fn close_ask(&self, ask: AskId) {
        self.state.lock().close_ask(ask);
    }

    /// Withdraws a question to the client and tells a reader that received it.
    pub(super) fn withdraw_ask(&self, ask: AskId) {
        let mut state = self.state.lock();
        let was_sent = state.events.has_sent(ask, state.read);
        if state.close_ask(ask).is_none() || !was_sent || state.events.has_ended() {
            return;
        }
        let waker = state.push(CallEventKind::Withdrawn { ask });
        drop(state);
        wake(waker);
    }

    /// Answers a question for this reader, unless a later one has attached. Returns `true` also for
    /// a repeated answer whose acknowledgement was lost.
    pub(super) fn answer(&self, number: u64, ask: AskId, answer: Outcome) -> bool {
        let mut state = self.state.lock();
        if state.readers != number {
            return false;
        }
        let Some(waiting) = state.close_ask(ask) else {
            return state.answered.contains(&ask);
        };
        // The tool may have stopped waiting.
        let open = waiting.send(answer).is_ok();
        if open {
            if state.answered.len() == ANSWERED {
                state.answered.pop_front();
            }
            state.answered.push_back(ask);
        }
        open
    }

    /// Ends the call. Returns whether this call of `finish` ended it.
    pub(super) fn finish(&self, outcome: CallOutcome) -> bool {
        let mut state = self.state.lock();
        if state.events.has_ended() {
            return false;
        }
        let cancelled = matches!(outcome, CallOutcome::Failed(CallFailure::Cancelled));
        state.withdrawn = cancelled && self.repeat == Repeat::Safe;
        state.events.end(outcome);
        let asks = std::mem::take(&mut state.asks);
        state.params = None;
        let waker = state.reader.as_mut().and_then(|reader| reader.waker.take());
        let retire = state.kept && !self.is_delivered_and_gone(&state);
        let bytes = state.events.bytes();
        drop(state);
        drop(asks);
        self.room.notify_waiters();
        self.slot.ended();
        if retire {
            self.retire(bytes);
        }
        wake(waker);
        true
    }

    /// Marks the call as entered in the ledger; it may have ended meanwhile.
    pub(super) fn kept(&self) {
        let mut state = self.state.lock();
        state.kept = true;
        let retire = state.events.has_ended() && !self.is_delivered_and_gone(&state);
        let bytes = state.events.bytes();
        drop(state);
        if retire {
            self.retire(bytes);
        }
    }

    /// Whether an ended call is forgotten because its reader has the end.
    fn is_delivered_and_gone(&self, state: &RecordState) -> bool {
        self.is_passing(state) && state.reader.as_ref().is_some_and(|reader| !reader.left)
    }

    pub(super) fn stop(&self, failure: CallFailure) -> bool {
        let ended = self.finish(CallOutcome::Failed(failure));
        self.cancelled.cancel();
        ended
    }

    /// The call's outcome, if the end is its only event.
    pub(super) fn ended(&self) -> Option<CallOutcome> {
        let state = self.state.lock();
        match state.events.next_after(0).map(|event| &event.kind) {
            Some(CallEventKind::Finished(outcome)) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// Whether the record goes once its end is read: the call is safe to repeat, and it sent only
    /// its end, was lost or was withdrawn. Otherwise a resent call would find the record instead of
    /// running.
    fn is_passing(&self, state: &RecordState) -> bool {
        let events = &state.events;
        self.repeat == Repeat::Safe && (events.last() == 1 || events.was_lost() || state.withdrawn)
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.state.lock().withdrawn
    }

    /// `None` after the worker is gone.
    pub(super) fn deserted_after(&self) -> Option<Duration> {
        Some(self.ledger.upgrade()?.deserted_after())
    }

    /// Keeps the end for later readers; a withdrawn call has none.
    fn retire(&self, bytes: usize) {
        let Some(ledger) = self.ledger.upgrade() else {
            return;
        };
        match self.is_withdrawn() {
            true => ledger.forget(self.id),
            false => ledger.retire(self.id, bytes),
        }
    }
}

impl RecordState {
    fn close_ask(&mut self, ask: AskId) -> Option<oneshot::Sender<Outcome>> {
        let at = self.asks.iter().position(|(id, _)| *id == ask)?;
        self.events.forget_ask(ask);
        Some(self.asks.swap_remove(at).1)
    }

    fn push(&mut self, kind: CallEventKind) -> Option<Waker> {
        let read = self.reader.as_ref().map_or(u64::MAX, |reader| reader.read);
        self.events.push(kind, read);
        self.reader.as_mut().and_then(|reader| reader.waker.take())
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests;
