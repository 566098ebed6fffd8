use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const PAUSE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Throttle {
    state: Mutex<(Option<Instant>, u64)>,
}

impl Throttle {
    /// Returns how many messages were suppressed before, if the caller may log this one.
    pub(crate) fn admit(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let (last, kept_back) = &mut *state;
        let now = Instant::now();
        if last.is_some_and(|last| now < last + PAUSE) {
            *kept_back += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(kept_back))
    }
}

#[cfg(test)]
mod tests {
    use super::{PAUSE, Throttle};

    #[tokio::test]
    async fn one_message_per_pause_and_the_others_are_counted() {
        tokio::time::pause();
        let throttle = Throttle::default();
        assert_eq!(throttle.admit(), Some(0));
        assert_eq!(throttle.admit(), None);
        assert_eq!(throttle.admit(), None);
        tokio::time::advance(PAUSE).await;
        assert_eq!(throttle.admit(), Some(2));
    }
}
