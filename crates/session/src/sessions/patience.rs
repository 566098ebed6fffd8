//! The patience of sessions that leave together with a store that is away.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long sessions that leave together wait for the store: an outage is waited for once, and not once for each of them.
pub(crate) struct Patience {
    most: Duration,
    /// Since when the store has answered none of them.
    away_since: Mutex<Option<Instant>>,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self {
            most,
            away_since: Mutex::default(),
        }
    }

    /// The store is away. Returns whether it is waited for any longer.
    pub(super) fn lasts(&self) -> bool {
        let mut since = self.away_since.lock();
        since.get_or_insert_with(Instant::now).elapsed() < self.most
    }

    /// The store has answered.
    pub(super) fn answered(&self) {
        *self.away_since.lock() = None;
    }
}
