use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use shoal_ports::{CallFailure, Repeat};

pub(super) const WHY: &str = "its edge was shut down before it ended";

/// Ends one call at shutdown. Only one task may wait for it, because it has one waker.
#[derive(Default)]
pub(super) struct Stop {
    stopped: AtomicBool,
    waker: AtomicWaker,
}

impl Stop {
    pub(super) fn fire(&self) {
        self.stopped.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub(super) fn has_fired(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Registered first, so that a concurrent stop wakes the task.
        self.waker.register(cx.waker());
        match self.has_fired() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

pub(super) fn before_it_began() -> CallFailure {
    CallFailure::not_executed("its edge was shut down before it began")
}

pub(super) fn amid(repeat: Repeat) -> CallFailure {
    match repeat {
        Repeat::Safe => CallFailure::not_executed(WHY),
        Repeat::Never => {
            CallFailure::outcome_unknown(format!("{WHY}, and its tool was told to stop"))
        }
    }
}
