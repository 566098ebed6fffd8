//! Where a running call's control is found, from the moment the call is admitted.

use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{AskId, CallControl, CallId};
use shoal_protocol::Outcome;

/// Joins a session's request to the call that runs for it. Made before the call is dispatched, so that a
/// cancellation that overtakes the dispatch is not lost.
pub(crate) struct CallSlot {
    call: CallId,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    control: Option<Arc<dyn CallControl>>,
    cancelled: Option<String>,
}

impl CallSlot {
    /// A slot for a call that is not running yet.
    pub(crate) fn new(call: CallId) -> Self {
        Self {
            call,
            state: Mutex::default(),
        }
    }

    /// The call now runs; a cancellation that came before is passed on.
    pub(crate) fn started(&self, control: Arc<dyn CallControl>) {
        let mut state = self.state.lock();
        if let Some(reason) = &state.cancelled {
            control.cancel(reason);
        }
        state.control = Some(control);
    }

    /// Stops the call, now or as soon as it runs.
    pub(crate) fn cancel(&self, reason: &str) {
        let mut state = self.state.lock();
        match &state.control {
            Some(control) => control.cancel(reason),
            None => state.cancelled = Some(reason.to_owned()),
        }
    }

    /// Hands an answer of the client to the call.
    pub(crate) fn answer(&self, ask: AskId, outcome: Outcome) {
        // Cloned so that the control runs outside the lock.
        let control = self.state.lock().control.clone();
        if let Some(control) = control {
            control.answer(ask, outcome);
        }
    }
}

impl std::fmt::Debug for CallSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallSlot({})", self.call)
    }
}
