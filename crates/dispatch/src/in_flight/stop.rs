//! How a call ends that is under way when its node shuts down: at once, whatever its worker makes of that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use shoal_ports::{CallFailure, Repeat};

/// Why the tool of such a call is told to stop.
pub(super) const WHY: &str = "its edge was shut down before it ended";

/// Whether a call has been stopped. One task at a time waits for that.
#[derive(Default)]
pub(super) struct Stop {
    stopped: AtomicBool,
    waker: AtomicWaker,
}

impl Stop {
    /// Stops the call.
    pub(super) fn fire(&self) {
        self.stopped.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether the call has been stopped.
    pub(super) fn has_fired(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Ready once the call has been stopped.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Registered first, so that a stop which comes meanwhile wakes.
        self.waker.register(cx.waker());
        match self.has_fired() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

/// How a call ends that was stopped before it began.
pub(super) fn before_it_began() -> CallFailure {
    CallFailure::not_executed("its edge was shut down before it began")
}

/// How a call ends that was stopped and may have begun.
pub(super) fn amid(repeat: Repeat) -> CallFailure {
    match repeat {
        Repeat::Safe => CallFailure::not_executed(WHY),
        Repeat::Never => {
            CallFailure::outcome_unknown(format!("{WHY}, and its tool was told to stop"))
        }
    }
}
