//! How long to wait before a failed process is started again.

use std::time::Duration;

use tokio::time::Instant;

/// A process that lived this long had not failed to start.
const STABLE: Duration = Duration::from_secs(10);

/// Pauses that double with each failure in a row.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Begins with `first` and never waits longer than `longest`.
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest: longest.max(first),
            failures: 0,
        }
    }

    /// The pause after a failure of a process that was begun at `began`. Half of it is random, so
    /// that many workers that failed together do not start together.
    pub(super) fn after_failure(&mut self, began: Instant) -> Duration {
        if began.elapsed() >= STABLE {
            self.failures = 0;
        }
        let doubled = self.first.saturating_mul(1 << self.failures.min(20));
        self.failures += 1;
        doubled
            .min(self.longest)
            .mul_f64(0.5 + rand::random::<f64>() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{Backoff, STABLE};

    #[tokio::test]
    async fn pauses_double_up_to_the_longest_and_start_over_after_a_stable_run() {
        tokio::time::pause();
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for full in [100, 200, 400, 800, 1000, 1000] {
            let pause = backoff.after_failure(Instant::now());
            let full = Duration::from_millis(full);
            assert!(pause >= full / 2 && pause <= full, "{pause:?} of {full:?}");
        }
        let began = Instant::now();
        tokio::time::advance(STABLE).await;
        assert!(backoff.after_failure(began) <= Duration::from_millis(100));
    }
}
