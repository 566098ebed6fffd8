//! What a worker knows of one call: its events, its open questions, its reader.

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

/// Events that a reader may be behind before the tool has to wait for it.
const UNREAD_EVENTS: u64 = 64;
/// Answered questions that are remembered: whoever gave the last of them may not know yet that it arrived.
const ANSWERED: usize = 128;

/// One call, from its admission until nobody can attach to it any more.
pub(super) struct CallRecord {
    pub(super) id: CallId,
    pub(super) caller: Arc<Caller>,
    pub(super) log: LogFilter,
    pub(super) method: Method,
    pub(super) admitted: Instant,
    pub(super) cancelled: CancellationToken,
    repeat: Repeat,
    begun: AtomicBool,
    /// The epoch of the latest owner of a session that has come for it, though it began without one: it has become a task.
    /// Zero: none has.
    adopted: AtomicU64,
    /// The span that it runs in.
    span: OnceLock<TraceContext>,
    ledger: Weak<Ledger>,
    state: Mutex<RecordState>,
    /// Tells writers that the reader has taken something.
    room: Notify,
    pub(super) slot: ActorSlot,
    /// One request to the session at a time, so that their order is that of the tool.
    pub(super) state_turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct RecordState {
    events: EventBuffer,
    reader: Option<AttachedReader>,
    readers: u64,
    /// The newest event that any reader has had.
    read: u64,
    /// The name of the latest reader: its number when it first came.
    name: u64,
    asks: Vec<(AskId, oneshot::Sender<Outcome>)>,
    asked: u64,
    answered: VecDeque<AskId>,
    /// Only to name the call in the log while it runs.
    params: Option<RawJson>,
    /// Whether the ledger has the call, and must hear when it may be forgotten.
    kept: bool,
    /// Whether a reader has been given the call's end.
    delivered: bool,
    /// Whether it was told to stop and may run again: its client was told that it does not run, and may send it again.
    withdrawn: bool,
}

/// Whoever reads the events now. A later reader takes over: the earlier one is most likely half of a
/// broken connection.
struct AttachedReader {
    number: u64,
    read: u64,
    waker: Option<Waker>,
    /// It has gone, and may come back: the tool waits for it as for a slow one.
    left: bool,
}

/// Whether an event was taken in.
pub(super) enum Offered {
    /// Yes.
    Taken,
    /// The call has ended.
    Ended,
    /// The reader is too far behind.
    Full(CallEventKind),
}

impl CallRecord {
    /// Notes the span that the call runs in.
    pub(super) fn runs_in(&self, span: Option<&TraceContext>) {
        if let Some(span) = span {
            // It is noted once, where the call is entered.
            let _ = self.span.set(span.clone());
        }
    }

    /// The span that the call runs in.
    pub(super) fn runs(&self) -> Option<&TraceContext> {
        self.span.get()
    }

    /// A call, and whether the ledger has it.
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

    /// Whether the ledger has the call.
    pub(super) fn is_kept(&self) -> bool {
        self.state.lock().kept
    }

    /// Whether the call has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().events.has_ended()
    }

    /// Whether somebody may yet come for the call's end, which nobody has been given: the next owner of its session, or
    /// whoever read it by a link that broke.
    pub(super) fn awaits_reader(&self) -> bool {
        let state = self.state.lock();
        let wanted = self.is_of_session() || !self.cancelled.is_cancelled();
        wanted && state.events.has_ended() && !state.delivered
    }

    /// Somebody comes for it: the owner of a session, in this epoch, or whoever has begun it without one.
    ///
    /// # Errors
    /// `Superseded` where a later owner has. One without an epoch comes after any: it has become a task, and a request that is sent
    /// again does not take it back.
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

    /// Whether the next owner of a session may come for it, whoever reads it now.
    fn is_of_session(&self) -> bool {
        self.caller.session.is_some() || self.adopted.load(Ordering::Relaxed) > 0
    }

    /// Its end is given to whoever has begun it.
    pub(super) fn deliver(&self) {
        self.state.lock().delivered = true;
    }

    /// Whether the call has neither begun nor ended.
    pub(super) fn waits(&self) -> bool {
        !self.begun.load(Ordering::Relaxed) && !self.has_ended()
    }

    /// The tool is about to see the call; `false` when the call has ended, and it must not.
    pub(super) fn begin(&self) -> bool {
        // Under the lock that ends the call, so that whoever forgets an ended call knows whether it has run.
        let state = self.state.lock();
        let begins = !state.events.has_ended();
        if begins {
            self.begun.store(true, Ordering::Relaxed);
        }
        begins
    }

    /// The tool does not see the call yet after all; `false` when the call has ended.
    pub(super) fn pause(&self) -> bool {
        let state = self.state.lock();
        let waits = !state.events.has_ended();
        if waits {
            self.begun.store(false, Ordering::Relaxed);
        }
        waits
    }

    /// Whether the call must not run twice.
    pub(super) fn is_once(&self) -> bool {
        self.repeat == Repeat::Never
    }

    /// Why a call that must not be repeated was given back, or stopped, without having run.
    pub(super) fn refused(&self) -> Option<CallFailure> {
        if !self.is_once() || self.begun.load(Ordering::Relaxed) {
            return None;
        }
        match self.ended() {
            Some(CallOutcome::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// What a client has to know when the call ends without its tool.
    pub(super) fn lost(&self, reason: &str) -> CallFailure {
        let reason = reason.to_owned();
        if self.begun.load(Ordering::Relaxed) {
            CallFailure::OutcomeUnknown { reason }
        } else {
            CallFailure::NotExecuted { reason }
        }
    }

    /// What the call was given, while it runs.
    pub(super) fn params(&self) -> Option<RawJson> {
        self.state.lock().params.clone()
    }

    /// Offers an event to the reader, unless that is too far behind.
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

    /// Returns when the reader has taken something, left or been replaced since `offer` said full, or
    /// after `patience`; whether it was the former.
    pub(super) async fn room(&self, patience: Duration) -> bool {
        let room = self.room.notified();
        tokio::pin!(room);
        room.as_mut().enable();
        // What happened between the offer and `enable` was not notified to this future.
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

    /// Puts a question, which `kind` makes of its number; the receiver yields its answer, or nothing when the
    /// call ends before.
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

    /// Takes back a request to the session that nobody waits for any more.
    pub(super) fn close_ask(&self, ask: AskId) {
        self.state.lock().close_ask(ask);
    }

    /// Takes back a question to the client that nobody waits for any more, and tells the reader, which may have asked the client.
    /// A question that no reader has had is forgotten.
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

    /// Answers a question for the reader of this number, unless a later one has attached. Whether the question has
    /// its answer: this one, or one that came before and whose acknowledgement was lost.
    pub(super) fn answer(&self, number: u64, ask: AskId, answer: Outcome) -> bool {
        let mut state = self.state.lock();
        if state.readers != number {
            return false;
        }
        let Some(waiting) = state.close_ask(ask) else {
            return state.answered.contains(&ask);
        };
        // The tool may have stopped waiting; then nobody was answered.
        let open = waiting.send(answer).is_ok();
        if open {
            if state.answered.len() == ANSWERED {
                state.answered.pop_front();
            }
            state.answered.push_back(ask);
        }
        open
    }

    /// Ends the call, unless it has ended already; whether this ended it.
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

    /// The ledger has the call now, which may have ended meanwhile.
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

    /// Whether a call that has ended is gone once its reader has its end.
    fn is_delivered_and_gone(&self, state: &RecordState) -> bool {
        self.is_passing(state) && state.reader.as_ref().is_some_and(|reader| !reader.left)
    }

    /// Ends the call because of `failure`, and tells the tool to stop.
    pub(super) fn stop(&self, failure: CallFailure) -> bool {
        let ended = self.finish(CallOutcome::Failed(failure));
        self.cancelled.cancel();
        ended
    }

    /// How the call has ended, if that is all there is to read of it.
    pub(super) fn ended(&self) -> Option<CallOutcome> {
        let state = self.state.lock();
        match state.events.next_after(0).map(|event| &event.kind) {
            Some(CallEventKind::Finished(outcome)) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// Whether the call is not kept once its end has been read: one that is safe to repeat, and said nothing but its end, or
    /// was lost or withdrawn. Were such a one kept, a reader that sends it again would find it instead of having it run.
    fn is_passing(&self, state: &RecordState) -> bool {
        let events = &state.events;
        self.repeat == Repeat::Safe && (events.last() == 1 || events.was_lost() || state.withdrawn)
    }

    /// Whether it was told to stop and may run again.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.state.lock().withdrawn
    }

    /// How long it goes on when nobody reads it; `None` when its worker has gone.
    pub(super) fn deserted_after(&self) -> Option<Duration> {
        Some(self.ledger.upgrade()?.deserted_after())
    }

    /// Keeps how it has ended for who may come for it; for a withdrawn one nobody does.
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
