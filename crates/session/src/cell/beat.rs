//! Who looks for actors that have nothing to do.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::SessionCell;

/// Sessions that are looked at without letting others run.
const AT_ONCE: usize = 1_000;

/// The sessions whose actors are up, each once, and some that have just gone. A beat looks at no others.
#[derive(Default)]
pub(crate) struct Up(Mutex<Vec<Arc<SessionCell>>>);

impl Up {
    pub(super) fn add(&self, cell: Arc<SessionCell>) {
        self.0.lock().push(cell);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(super) async fn beat(&self) {
        let mut up = std::mem::take(&mut *self.0.lock());
        let mut kept = Vec::new();
        while !up.is_empty() {
            let some = up.drain(up.len().saturating_sub(AT_ONCE)..);
            kept.extend(some.filter(SessionCell::beat));
            tokio::task::yield_now().await;
        }
        self.0.lock().append(&mut kept);
    }
}

/// Asks actors to go that have had nothing to do for so long, and at most for twice that, until `stop` fires.
pub(crate) async fn beat(up: Arc<Up>, doze_after: Duration, stop: CancellationToken) {
    let mut every = tokio::time::interval(doze_after);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = every.tick() => up.beat().await,
        }
    }
}
