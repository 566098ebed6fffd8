//! How long to wait before the next attempt.

use std::time::Duration;

/// Doubling waits with full jitter, so that nodes which lost Redis together do not come back together.
#[derive(Debug)]
pub(crate) struct Backoff {
    attempt: u32,
    longest: Duration,
}

const SHORTEST: Duration = Duration::from_millis(50);

impl Backoff {
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            attempt: 0,
            longest: longest.max(SHORTEST),
        }
    }

    /// Begins anew, after a success that lasted.
    pub(crate) fn reset(&mut self) {
        self.attempt = 0;
    }

    /// The next wait: at least half of what it may be at most.
    pub(crate) fn next(&mut self) -> Duration {
        let most = SHORTEST
            .saturating_mul(1 << self.attempt.min(16))
            .min(self.longest);
        self.attempt = self.attempt.saturating_add(1);
        most.mul_f64(rand::random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Backoff;

    #[test]
    fn waits_grow_up_to_a_limit() {
        let mut backoff = Backoff::new(Duration::from_secs(2));
        let waits: Vec<_> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] <= Duration::from_millis(50));
        assert!(waits.iter().all(|wait| *wait <= Duration::from_secs(2)));
        assert!(waits[39] >= Duration::from_secs(1));
        backoff.reset();
        assert!(backoff.next() <= Duration::from_millis(50));
    }
}
