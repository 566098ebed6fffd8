//! Where a running call's control is found, from the moment the call is admitted.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use shoal_ports::{Answered, AskId, CallControl, CallId, answered};
use shoal_protocol::Outcome;
use shoal_telemetry::metrics::Failure;
use shoal_telemetry::trace::{Span, attributes as key};
use tokio::sync::{Notify, oneshot};

/// Joins a session's request to the call that runs for it. Made before the call is dispatched or found
/// again, so that a cancellation or an answer that overtakes that is not lost.
pub(crate) struct CallSlot {
    call: CallId,
    /// Whether the call must not run twice, as far as that is known.
    once: AtomicBool,
    state: Mutex<SlotState>,
    /// Tells whoever is about to start the call that it was cancelled.
    cancelled: Notify,
    /// Tells whoever waits for the call's end for nobody that somebody has come for it.
    wanted: Notify,
    /// Tells whoever waits for an answer's arrival that none arrives here any more.
    left: Notify,
}

#[derive(Default)]
struct SlotState {
    control: Option<Arc<dyn CallControl>>,
    cancelled: Option<String>,
    /// Whether the call has ended here, or goes on elsewhere.
    left: bool,
    answers: Vec<EarlyAnswer>,
    /// Ready when nothing of the call runs any more, though it has ended here.
    over: Option<Over>,
    /// The spans of what the client has been asked and not answered, where they are kept.
    asked: Vec<(AskId, Span)>,
}

/// The end of what runs of a call.
type Over = Shared<BoxFuture<'static, ()>>;

/// An answer that came before the call could be steered.
struct EarlyAnswer {
    ask: AskId,
    outcome: Outcome,
    open: oneshot::Sender<bool>,
}

impl CallSlot {
    /// A slot for a call that cannot be steered yet.
    pub(crate) fn new(call: CallId) -> Self {
        Self {
            call,
            once: AtomicBool::new(false),
            state: Mutex::default(),
            cancelled: Notify::new(),
            wanted: Notify::new(),
            left: Notify::new(),
        }
    }

    /// The call's identity.
    pub(crate) fn call(&self) -> CallId {
        self.call
    }

    /// The call must not run twice.
    pub(crate) fn run_once(&self) {
        self.once.store(true, Ordering::Relaxed);
    }

    /// Whether the call is known to be one that must not run twice.
    pub(crate) fn runs_once(&self) -> bool {
        self.once.load(Ordering::Relaxed)
    }

    /// Whether the call has been cancelled before it could be steered.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled.is_some()
    }

    /// Returns when the call has been cancelled before it could be steered. Cancellation safe.
    pub(crate) async fn until_cancelled(&self) {
        loop {
            let mut cancelled = pin!(self.cancelled.notified());
            // Before the look, so that nothing that happens after it is missed.
            cancelled.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            cancelled.await;
        }
    }

    /// Whoever brought it brings it again: who holds it for nobody is to let it go.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Returns when somebody has come for the call. Cancellation safe.
    pub(crate) async fn until_wanted(&self) {
        self.wanted.notified().await;
    }

    /// The call can now be steered; what came before is passed on.
    pub(crate) fn started(&self, control: Arc<dyn CallControl>) {
        let mut state = self.state.lock();
        if state.left {
            return;
        }
        if let Some(reason) = &state.cancelled {
            control.cancel(reason);
        }
        for early in std::mem::take(&mut state.answers) {
            let arriving = control.answer(early.ask, early.outcome);
            tokio::spawn(async move { early.open.send(arriving.await) });
        }
        state.control = Some(control);
    }

    /// Stops the call, now or as soon as it can be steered. `false` when somebody else steers it.
    pub(crate) fn cancel(&self, reason: &str) -> bool {
        let mut state = self.state.lock();
        match &state.control {
            Some(control) => {
                control.cancel(reason);
                !control.is_replaced()
            }
            None => {
                state.cancelled = Some(reason.to_owned());
                self.cancelled.notify_waiters();
                true
            }
        }
    }

    /// Whether something of the call runs on that is about to leave; asked once, and known from then on.
    pub(super) fn outlives(&self) -> bool {
        let control = {
            let state = self.state.lock();
            state.control.clone().filter(|_| state.over.is_none())
        };
        // The control is asked outside the lock.
        let over = control.and_then(|control| control.over());
        let outlives = over.is_some();
        if let Some(over) = over {
            self.state.lock().over = Some(over.shared());
        }
        outlives
    }

    /// Whether nothing runs of a call that has left.
    pub(super) fn is_over(&self) -> bool {
        let over = self.state.lock().over.clone();
        over.is_none_or(|over| over.now_or_never().is_some())
    }

    /// Returns when the call has left, and nothing of it runs any more. Cancellation safe.
    pub(crate) async fn until_over(&self) {
        loop {
            let mut left = pin!(self.left.notified());
            // Before the look, so that nothing that happens after it is missed.
            left.as_mut().enable();
            if self.state.lock().left {
                break;
            }
            left.await;
        }
        let over = self.state.lock().over.clone();
        if let Some(over) = over {
            over.await;
        }
    }

    /// The client is asked something; the span ends with its answer.
    pub(crate) fn asks(&self, ask: AskId, span: Span) {
        if span.is_recording() {
            self.state.lock().asked.push((ask, span));
        }
    }

    /// Nobody waits for the client's answer any more.
    pub(crate) fn withdrawn(&self, ask: AskId) {
        let asked = self.state.lock().take_asked(ask);
        if let Some(mut span) = asked {
            span.record_error("withdrawn");
        }
    }

    /// The call has ended, or goes on elsewhere: whatever the client has not answered it will not answer here; `why`
    /// in a word. What the call was is let go.
    pub(crate) fn leave(&self, why: &'static str) {
        let asked = {
            let mut state = self.state.lock();
            let left = SlotState {
                left: true,
                over: state.over.take(),
                ..SlotState::default()
            };
            std::mem::replace(&mut *state, left).asked
        };
        self.left.notify_waiters();
        for (_, mut span) in asked {
            span.record_error(why);
        }
    }

    /// Hands an answer of the client to the call; whether what was asked has its answer. That is known by the worker's word, or
    /// by the call's end, which need not wait for that word. Cancellation safe: what was handed over is not taken back.
    pub(crate) async fn answer(&self, ask: AskId, outcome: Outcome) -> bool {
        let mut left = pin!(self.left.notified());
        // Before the answer, so that no end after it is missed.
        left.as_mut().enable();
        tokio::select! {
            biased;
            open = self.pass(ask, outcome) => open,
            () = left => false,
        }
    }

    fn pass(&self, ask: AskId, outcome: Outcome) -> Answered {
        let mut state = self.state.lock();
        if state.left {
            // Whoever finds a call may come when it has just ended.
            return answered(false);
        }
        state.answered(ask, &outcome);
        if let Some(control) = state.control.clone() {
            // The control runs outside the lock.
            drop(state);
            return control.answer(ask, outcome);
        }
        let (open, arriving) = oneshot::channel();
        state.answers.push(EarlyAnswer { ask, outcome, open });
        Box::pin(async move { arriving.await.unwrap_or(false) })
    }
}

impl SlotState {
    /// Removes the span of a question, and returns it.
    fn take_asked(&mut self, ask: AskId) -> Option<Span> {
        let at = self.asked.iter().position(|(asked, _)| *asked == ask)?;
        Some(self.asked.swap_remove(at).1)
    }

    /// The span of what was asked ends.
    fn answered(&mut self, ask: AskId, outcome: &Outcome) {
        let Some(mut span) = self.take_asked(ask) else {
            return;
        };
        if let Outcome::Error(error) = outcome {
            span.set(key::RPC_RESPONSE_STATUS_CODE, &error.code.to_string());
            span.record_error(Failure::Code(error.code).error_type());
        }
    }
}

impl std::fmt::Debug for CallSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallSlot({})", self.call)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use shoal_ports::{AskId, CallId};
    use shoal_protocol::{Outcome, RawJson};

    use super::CallSlot;

    fn answer(slot: &CallSlot) -> impl Future<Output = bool> {
        slot.answer(AskId(1), Outcome::Result(RawJson::from_static("{}")))
    }

    #[test]
    fn an_answer_to_a_call_that_has_ended_is_waited_for_by_nobody() {
        let slot = CallSlot::new(CallId::generate());
        let mut early = Box::pin(answer(&slot));
        assert_eq!((&mut early).now_or_never(), None, "the call may yet begin");
        slot.leave("unanswered");
        assert_eq!(early.now_or_never(), Some(false));
        assert_eq!(answer(&slot).now_or_never(), Some(false));
    }
}
