use std::time::Duration;

use rand::Rng;

/// Growing pauses between attempts, with a random part.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Makes pauses that double from `first` up to `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first.min(longest),
        }
    }

    /// Returns a random time between half the next pause and all of it.
    pub fn pause(&mut self) -> Duration {
        self.pause_by(&mut rand::rng())
    }

    /// Like [`pause`](Self::pause), with the caller's random generator.
    pub fn pause_by(&mut self, rng: &mut impl Rng) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.longest);
        whole.mul_f64(rng.random_range(0.5..=1.0))
    }

    /// Restarts at the first pause, after a success.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Backoff;

    #[test]
    fn pauses_grow_to_the_longest_and_begin_anew() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(100), ms(300));
        for most in [100, 200, 300, 300] {
            let pause = backoff.pause();
            assert!((ms(most) / 2..=ms(most)).contains(&pause), "{pause:?}");
        }
        backoff.reset();
        assert!(backoff.pause() <= ms(100));
    }
}
