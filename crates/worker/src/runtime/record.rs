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
use super::ledger::CallLedger;
use super::slot::ActorSlot;

mod readers;

/// Maximum unread events before the tool waits for the reader.
const UNREAD_EVENTS: u64 = 64;
/// Maximum answered questions remembered, because an acknowledgement may be lost.
const ANSWERED: usize = 128;

pub(super) struct CallRecord {
    pub(super) id: CallId,
    pub(super) caller: Arc<Caller>,
    pub(super) log: LogFilter,
    pub(super) method: Method,
    pub(super) admitted: Instant,
    pub(super) cancelled: CancellationToken,
    repeat: Repeat,
    begun: AtomicBool,
    /// The epoch of the latest session owner that took over this call, if it began without a session and
    /// became a task; else 0.
    adopted: AtomicU64,
    span: OnceLock<TraceContext>,
    ledger: Weak<CallLedger>,
    state: Mutex<RecordState>,
    room: Notify,
    pub(super) slot: ActorSlot,
    /// Held during a request to the session, to keep the tool's order.
    pub(super) state_turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct RecordState {
    events: EventBuffer,
    reader: Option<AttachedReader>,
    readers: u64,
    read: u64,
    /// The latest reader's name: its first number, which stays when it attaches again.
    name: u64,
    asks: Vec<(AskId, oneshot::Sender<Outcome>)>,
    asked: u64,
    answered: VecDeque<AskId>,
    params: Option<RawJson>,
    kept: bool,
    delivered: bool,
    /// The call was stopped and its client may resend it.
    withdrawn: bool,
}

/// A later reader takes over, because the earlier one's connection is probably broken.
struct AttachedReader {
    number: u64,
    read: u64,
    waker: Option<Waker>,
    /// Whether the reader has left. The tool still waits for it, because it may return.
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
            let _ = self.span.set(span.clone());
        }
    }

    pub(super) fn runs(&self) -> Option<&TraceContext> {
        self.span.get()
    }

    pub(super) fn new(call: &Call, ledger: Weak<CallLedger>, kept: bool) -> Arc<Self> {
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

    /// Whether a reader may still come for the call's end: the session's next owner, or a reader
    /// whose link broke.
    pub(super) fn awaits_reader(&self) -> bool {
        let state = self.state.lock();
        let wanted = self.is_of_session() || !self.cancelled.is_cancelled();
        wanted && state.events.has_ended() && !state.delivered
    }

    /// Checks whether a reader may attach: a session owner with its epoch, or the caller of a call without a
    /// session.
    ///
    /// # Errors
    /// `Superseded` if a later owner has the call; a resent request without an epoch cannot reclaim a task.
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

    fn is_of_session(&self) -> bool {
        self.caller.session.is_some() || self.adopted.load(Ordering::Relaxed) > 0
    }

    pub(super) fn deliver(&self) {
        self.state.lock().delivered = true;
    }

    pub(super) fn waits(&self) -> bool {
        !self.begun.load(Ordering::Relaxed) && !self.has_ended()
    }

    /// Marks the call as begun, before the tool sees it. Returns `false` if it has ended.
    pub(super) fn begin(&self) -> bool {
        // This lock also guards the end, so an ended call's flag is final.
        let state = self.state.lock();
        let begins = !state.events.has_ended();
        if begins {
            self.begun.store(true, Ordering::Relaxed);
        }
        begins
    }

    /// Reverts [`begin`](Self::begin). Returns `false` if the call has ended.
    pub(super) fn pause(&self) -> bool {
        let state = self.state.lock();
        let waits = !state.events.has_ended();
        if waits {
            self.begun.store(false, Ordering::Relaxed);
        }
        waits
    }

    pub(super) fn runs_once(&self) -> bool {
        self.repeat == Repeat::Never
    }

    pub(super) fn refused(&self) -> Option<CallFailure> {
        if !self.runs_once() || self.begun.load(Ordering::Relaxed) {
            return None;
        }
        match self.ended() {
            Some(CallOutcome::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

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

    /// Returns whether the reader read, left or was replaced within `patience`.
    pub(super) async fn room(&self, patience: Duration) -> bool {
        let room = self.room.notified();
        tokio::pin!(room);
        room.as_mut().enable();
        // Checked again, because a change may have come before `enable`.
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

    /// The receiver closes if the call ends. `None` if the call has ended or `limit` questions are open.
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

    /// Passes an answer to the tool, unless a later reader has attached. Returns `true` again for a repeated
    /// answer, whose acknowledgement may have been lost.
    pub(super) fn answer(&self, number: u64, ask: AskId, answer: Outcome) -> bool {
        let mut state = self.state.lock();
        if state.readers != number {
            return false;
        }
        let Some(waiting) = state.close_ask(ask) else {
            return state.answered.contains(&ask);
        };
        let open = waiting.send(answer).is_ok();
        if open {
            if state.answered.len() == ANSWERED {
                state.answered.pop_front();
            }
            state.answered.push_back(ask);
        }
        open
    }

    /// Returns `false` if the call had already ended.
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

    fn is_delivered_and_gone(&self, state: &RecordState) -> bool {
        self.is_passing(state) && state.reader.as_ref().is_some_and(|reader| !reader.left)
    }

    pub(super) fn stop(&self, failure: CallFailure) -> bool {
        let ended = self.finish(CallOutcome::Failed(failure));
        self.cancelled.cancel();
        ended
    }

    pub(super) fn ended(&self) -> Option<CallOutcome> {
        let state = self.state.lock();
        match state.events.next_after(0).map(|event| &event.kind) {
            Some(CallEventKind::Finished(outcome)) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// Whether the worker drops the record once the call's end is read: the call is repeatable, and
    /// sent only its end, was lost or was withdrawn. Otherwise a resent call would find the record
    /// instead of running.
    fn is_passing(&self, state: &RecordState) -> bool {
        let events = &state.events;
        self.repeat == Repeat::Safe && (events.last() == 1 || events.was_lost() || state.withdrawn)
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.state.lock().withdrawn
    }

    pub(super) fn deserted_after(&self) -> Option<Duration> {
        Some(self.ledger.upgrade()?.deserted_after())
    }

    /// Keeps the end for later readers, which a withdrawn call does not have.
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
