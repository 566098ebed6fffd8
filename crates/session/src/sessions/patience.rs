use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The longest wait in several outages, as a multiple of the longest wait in one outage.
const OUTAGES: u32 = 3;

/// How long sessions that leave together wait for the store. An outage delays them once; repeated outages delay them
/// at most [`OUTAGES`] times as long.
pub(crate) struct Patience {
    most: Duration,
    waited: Mutex<Waited>,
}

#[derive(Default)]
struct Waited {
    away_since: Option<Instant>,
    before: Duration,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self {
            most,
            waited: Mutex::default(),
        }
    }

    pub(super) fn lasts(&self) -> bool {
        let mut waited = self.waited.lock();
        let outage = (waited.away_since.get_or_insert_with(Instant::now)).elapsed();
        outage < self.most && waited.before + outage < self.most * OUTAGES
    }

    pub(super) fn answered(&self) {
        let mut waited = self.waited.lock();
        if let Some(since) = waited.away_since.take() {
            waited.before += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::{OUTAGES, Patience};

    const MOST: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_store_that_comes_and_goes_is_not_waited_for_without_end() {
        let patience = Patience::new(MOST);
        for _ in 0..2 * OUTAGES {
            assert!(patience.lasts());
            advance(MOST / 2).await;
            patience.answered();
        }
        assert!(!patience.lasts());
    }

    #[tokio::test(start_paused = true)]
    async fn one_outage_is_waited_for_once() {
        let patience = Patience::new(MOST);
        assert!(patience.lasts());
        advance(MOST).await;
        assert!(!patience.lasts());
        patience.answered();
        assert!(patience.lasts());
    }
}
