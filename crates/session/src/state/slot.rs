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

/// Connects a request with its call from its admission on, so that an early cancellation or answer
/// is kept.
pub(crate) struct CallSlot {
    call: CallId,
    runs_once: AtomicBool,
    state: Mutex<SlotState>,
    cancelled: Notify,
    /// Fires when a call whose caller has left is delivered again.
    wanted: Notify,
    left: Notify,
}

#[derive(Default)]
struct SlotState {
    control: Option<Arc<dyn CallControl>>,
    cancelled: Option<String>,
    left: bool,
    answers: Vec<EarlyAnswer>,
    over: Option<Over>,
    asked: Vec<(AskId, Span)>,
}

type Over = Shared<BoxFuture<'static, ()>>;

struct EarlyAnswer {
    ask: AskId,
    outcome: Outcome,
    open: oneshot::Sender<bool>,
}

impl CallSlot {
    pub(crate) fn new(call: CallId) -> Self {
        Self {
            call,
            runs_once: AtomicBool::new(false),
            state: Mutex::default(),
            cancelled: Notify::new(),
            wanted: Notify::new(),
            left: Notify::new(),
        }
    }

    pub(crate) fn call(&self) -> CallId {
        self.call
    }

    pub(crate) fn run_once(&self) {
        self.runs_once.store(true, Ordering::Relaxed);
    }

    pub(crate) fn runs_once(&self) -> bool {
        self.runs_once.load(Ordering::Relaxed)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled.is_some()
    }

    /// Cancellation safe.
    pub(crate) async fn until_cancelled(&self) {
        loop {
            let mut cancelled = pin!(self.cancelled.notified());
            cancelled.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            cancelled.await;
        }
    }

    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Cancellation safe.
    pub(crate) async fn until_wanted(&self) {
        self.wanted.notified().await;
    }

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

    pub(super) fn outlives(&self) -> bool {
        let control = {
            let state = self.state.lock();
            state.control.clone().filter(|_| state.over.is_none())
        };
        // Called outside the lock.
        let over = control.and_then(|control| control.over());
        let outlives = over.is_some();
        if let Some(over) = over {
            self.state.lock().over = Some(over.shared());
        }
        outlives
    }

    pub(super) fn is_over(&self) -> bool {
        let over = self.state.lock().over.clone();
        over.is_none_or(|over| over.now_or_never().is_some())
    }

    /// Waits until the call has left and its tool has stopped. Cancellation safe.
    pub(crate) async fn until_over(&self) {
        loop {
            let mut left = pin!(self.left.notified());
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

    pub(crate) fn asks(&self, ask: AskId, span: Span) {
        if span.is_recording() {
            self.state.lock().asked.push((ask, span));
        }
    }

    pub(crate) fn withdrawn(&self, ask: AskId) {
        let asked = self.state.lock().take_asked(ask);
        if let Some(mut span) = asked {
            span.record_error("withdrawn");
        }
    }

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

    /// Returns whether the question was open, once the worker reports this or the call ends. Dropping the future does
    /// not take the answer back.
    pub(crate) async fn answer(&self, ask: AskId, outcome: Outcome) -> bool {
        let mut left = pin!(self.left.notified());
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
            return answered(false);
        }
        state.answered(ask, &outcome);
        if let Some(control) = state.control.clone() {
            drop(state);
            return control.answer(ask, outcome);
        }
        let (open, arriving) = oneshot::channel();
        state.answers.push(EarlyAnswer { ask, outcome, open });
        Box::pin(async move { arriving.await.unwrap_or(false) })
    }
}

impl SlotState {
    fn take_asked(&mut self, ask: AskId) -> Option<Span> {
        let at = self.asked.iter().position(|(asked, _)| *asked == ask)?;
        Some(self.asked.swap_remove(at).1)
    }

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
