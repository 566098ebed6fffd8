//! Waiting time for a store that is away.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Shared by sessions that leave together, so that an outage delays them once.
pub(crate) struct Patience {
    most: Duration,
    away_since: Mutex<Option<Instant>>,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self {
            most,
            away_since: Mutex::default(),
        }
    }

    /// Notes a failure and returns whether to keep waiting.
    pub(super) fn lasts(&self) -> bool {
        let mut since = self.away_since.lock();
        since.get_or_insert_with(Instant::now).elapsed() < self.most
    }

    pub(super) fn answered(&self) {
        *self.away_since.lock() = None;
    }
}
