//! How long sessions that leave together wait for a store that is away.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time that sessions which leave together share for waiting for the store: one outage delays them once, and not once each.
pub(crate) struct Patience {
    most: Duration,
    /// The time of the first failure since the store last answered one of the sessions.
    away_since: Mutex<Option<Instant>>,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self {
            most,
            away_since: Mutex::default(),
        }
    }

    /// Notes that the store is away. Returns whether to go on waiting for it.
    pub(super) fn lasts(&self) -> bool {
        let mut since = self.away_since.lock();
        since.get_or_insert_with(Instant::now).elapsed() < self.most
    }

    /// Notes that the store has answered.
    pub(super) fn answered(&self) {
        *self.away_since.lock() = None;
    }
}
