//! Pauses that grow, each with a random part so that those who wait together do not return together.

use std::time::Duration;

use rand::Rng;

/// A series of pauses between attempts, for everything that is tried again.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `first`, doubled up to `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first.min(longest),
        }
    }

    /// The next pause: between half and all of what its turn allows.
    pub fn pause(&mut self) -> Duration {
        self.pause_by(&mut rand::rng())
    }

    /// The same, by these dice.
    pub fn pause_by(&mut self, rng: &mut impl Rng) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.longest);
        whole.mul_f64(rng.random_range(0.5..=1.0))
    }

    /// Begins anew, after a success.
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
