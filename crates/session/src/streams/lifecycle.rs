//! What has become of a session here.

use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// What has become of a session here; it cannot be undone. Takes 64 bytes, where three tokens took 400.
#[derive(Default)]
pub(super) struct Lifecycle {
    flags: AtomicU8,
    changed: Notify,
    ending: OnceLock<&'static str>,
}

/// What can become of it, or several of these.
#[derive(Clone, Copy)]
pub(super) struct Turn(u8);

impl Turn {
    /// The session has ended.
    pub(super) const ENDED: Self = Self(1);
    /// This node does not own it any more: nothing is written from then on.
    pub(super) const LOST: Self = Self(2);
    /// Readers shall go on elsewhere.
    pub(super) const MOVED: Self = Self(4);
    /// The session is about to end: its calls are answered, and then it has.
    pub(super) const ENDING: Self = Self(8);

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Lifecycle {
    pub(super) fn set(&self, turn: Turn) {
        self.flags.fetch_or(turn.0, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// The session is about to end, and why.
    pub(super) fn end_because(&self, why: &'static str) {
        // It ends once.
        let _ = self.ending.set(why);
        self.set(Turn::ENDING);
    }

    /// Why the session is about to end, or has.
    pub(super) fn why_ending(&self) -> &'static str {
        self.ending
            .get()
            .copied()
            .unwrap_or("its session has ended")
    }

    /// Whether any of these has happened.
    pub(super) fn is(&self, any: Turn) -> bool {
        self.flags.load(Ordering::SeqCst) & any.0 != 0
    }

    /// Returns when any of these has happened. Cancellation safe.
    pub(super) async fn until(&self, any: Turn) {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Before the look, so that nothing that happens after it is missed.
            changed.as_mut().enable();
            if self.is(any) {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::poll;

    use super::{Lifecycle, Turn};

    #[tokio::test]
    async fn each_turn_is_seen_by_who_waits_for_it_and_by_who_comes_later() {
        let lifecycle = Lifecycle::default();
        let mut moved = Box::pin(lifecycle.until(Turn::MOVED));
        let mut over = Box::pin(lifecycle.until(Turn::MOVED.or(Turn::ENDED)));
        assert!(poll!(&mut moved).is_pending() && poll!(&mut over).is_pending());
        lifecycle.set(Turn::LOST);
        assert!(poll!(&mut moved).is_pending() && poll!(&mut over).is_pending());
        lifecycle.set(Turn::ENDED);
        assert!(poll!(&mut moved).is_pending() && poll!(&mut over).is_ready());
        lifecycle.set(Turn::MOVED);
        assert!(poll!(&mut moved).is_ready());
        assert!(lifecycle.is(Turn::LOST) && lifecycle.is(Turn::ENDED) && lifecycle.is(Turn::MOVED));
        assert_eq!(lifecycle.until(Turn::LOST).now_or_never(), Some(()));
    }
}
