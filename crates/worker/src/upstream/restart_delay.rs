use std::time::Duration;

use shoal_ports::Backoff;
use tokio::time::Instant;

use super::settings::UpstreamSettings;

/// The longest pause for which calls wait.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_secs(1);
/// How long a connection must last to count as started, and how long a caller is suspected after
/// its last crash.
pub(crate) const STABLE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct RestartDelay(Backoff);

impl RestartDelay {
    pub(crate) fn of(settings: &UpstreamSettings) -> Self {
        Self::between(settings.restart_delay, settings.max_restart_delay)
    }

    fn between(first: Duration, longest: Duration) -> Self {
        Self(Backoff::new(first, longest.max(first)))
    }

    pub(crate) fn reset(&mut self) {
        self.0.reset();
    }

    pub(crate) fn after_failure(&mut self, began: Instant) -> Duration {
        if began.elapsed() >= STABLE {
            self.0.reset();
        }
        self.0.pause()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{RestartDelay, STABLE};

    #[tokio::test]
    async fn pauses_double_up_to_the_longest_and_start_over_after_a_stable_run() {
        tokio::time::pause();
        let mut delay = RestartDelay::between(Duration::from_millis(100), Duration::from_secs(1));
        for full in [100, 200, 400, 800, 1000, 1000] {
            let pause = delay.after_failure(Instant::now());
            let full = Duration::from_millis(full);
            assert!(pause >= full / 2 && pause <= full, "{pause:?} of {full:?}");
        }
        let began = Instant::now();
        tokio::time::advance(STABLE).await;
        assert!(delay.after_failure(began) <= Duration::from_millis(100));
    }
}
