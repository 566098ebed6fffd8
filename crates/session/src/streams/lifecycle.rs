use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// Flags that are set once, in 64 bytes; three cancellation tokens took 400.
#[derive(Default)]
pub(super) struct Lifecycle {
    flags: AtomicU8,
    changed: Notify,
    ending: OnceLock<&'static str>,
}

#[derive(Clone, Copy)]
pub(super) struct Turn(u8);

impl Turn {
    pub(super) const ENDED: Self = Self(1);
    pub(super) const LOST: Self = Self(2);
    /// Readers must continue elsewhere.
    pub(super) const MOVED: Self = Self(4);
    /// The session ends, after its calls are answered.
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

    pub(super) fn end_because(&self, why: &'static str) {
        let _ = self.ending.set(why);
        self.set(Turn::ENDING);
    }

    pub(super) fn why_ending(&self) -> &'static str {
        self.ending
            .get()
            .copied()
            .unwrap_or("its session has ended")
    }

    pub(super) fn is(&self, any: Turn) -> bool {
        self.flags.load(Ordering::SeqCst) & any.0 != 0
    }

    /// Cancellation safe.
    pub(super) async fn until(&self, any: Turn) {
        loop {
            let mut changed = pin!(self.changed.notified());
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
