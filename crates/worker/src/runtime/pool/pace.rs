use std::time::Duration;

use tokio::time::Instant;

/// Halving the sample keeps it recent.
const WINDOW: u32 = 32;

/// Counts departures from a queue since it was last empty. Running calls count as departed, so the
/// estimate of a wait begins low, and grows while calls are stuck.
pub(super) struct Pace {
    since: Instant,
    left: u32,
    concurrency: u32,
}

impl Pace {
    pub(super) fn new(since: Instant, concurrency: usize) -> Self {
        Self {
            since,
            left: 0,
            concurrency: u32::try_from(concurrency).unwrap_or(u32::MAX).max(1),
        }
    }

    pub(super) fn left(&mut self, now: Instant) {
        self.left += 1;
        if self.left >= self.concurrency.saturating_mul(WINDOW) {
            self.left /= 2;
            self.since += now.saturating_duration_since(self.since) / 2;
        }
    }

    pub(super) fn wait(&self, ahead: usize, now: Instant) -> Duration {
        let seen = now.saturating_duration_since(self.since);
        let each = seen / self.left.saturating_add(self.concurrency);
        each.saturating_mul(u32::try_from(ahead + 1).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Duration = Duration::from_secs(1);

    #[test]
    fn pace_is_what_each_place_ends_in_its_time() {
        let start = Instant::now();
        let mut pace = Pace::new(start, 4);
        for second in 1..=100 {
            for _ in 0..4 {
                pace.left(start + CALL * second);
            }
        }
        let wait = pace.wait(39, start + CALL * 100);
        assert!(
            wait > Duration::from_secs(9) && wait <= Duration::from_secs(10),
            "ten for each place: {wait:?}"
        );
    }

    #[test]
    fn pace_is_guessed_before_a_call_has_ended() {
        let start = Instant::now();
        let pace = Pace::new(start, 4);
        assert_eq!(pace.wait(1000, start), Duration::ZERO);
        let wait = pace.wait(39, start + CALL);
        assert_eq!(wait, 10 * CALL, "none has ended in a second");
    }

    #[test]
    fn pace_follows_calls_that_become_slow() {
        let start = Instant::now();
        let mut pace = Pace::new(start, 1);
        for quick in 1..=1000 {
            pace.left(start + Duration::from_millis(quick));
        }
        let slow = start + CALL;
        for second in 1..=64 {
            pace.left(slow + CALL * second);
        }
        let wait = pace.wait(0, slow + 64 * CALL);
        assert!(wait > CALL * 9 / 10, "{wait:?}");
    }
}
