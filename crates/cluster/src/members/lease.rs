//! The node's own lease, by its own clock.

use std::time::Duration;

use tokio::time::Instant;

/// What this node knows of its lease. Counts from when a renewal was asked for, so that it never believes
/// in a lease for longer than the store does.
#[derive(Debug)]
pub(crate) struct LeaseClock {
    length: Duration,
    renewed: Option<Instant>,
    lapses: u64,
}

impl LeaseClock {
    /// No lease yet.
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            length,
            renewed: None,
            lapses: 0,
        }
    }

    /// Notes a renewal that was asked for at `asked`, before which the store saw the lease alive or not.
    /// Returns whether it has lapsed in between, so that others may have claimed what the node held.
    ///
    /// The store's word is not enough: a renewal that was given up may be carried out late, after a lapse,
    /// and then the next one finds the lease alive.
    pub(crate) fn renewed(&mut self, asked: Instant, was_alive: bool) -> bool {
        let first = self.renewed.is_none();
        let lapsed = !first && (!was_alive || self.remaining(asked).is_zero());
        self.renewed = Some(asked);
        self.lapses += u64::from(lapsed);
        lapsed
    }

    /// Notes that the lease was ended.
    pub(crate) fn ended(&mut self) {
        self.renewed = None;
    }

    /// How long the lease lives on if it is not renewed.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        self.renewed.map_or(Duration::ZERO, |renewed| {
            (renewed + self.length).saturating_duration_since(now)
        })
    }

    /// How often it lapsed.
    pub(crate) fn lapses(&self) -> u64 {
        self.lapses
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::LeaseClock;

    const LENGTH: Duration = Duration::from_secs(6);

    #[test]
    fn the_first_renewal_is_no_lapse() {
        let mut clock = LeaseClock::new(LENGTH);
        let now = Instant::now();
        assert_eq!(clock.remaining(now), Duration::ZERO);
        assert!(!clock.renewed(now, false));
        assert_eq!(clock.remaining(now + LENGTH / 3), LENGTH * 2 / 3);
        assert!(!clock.renewed(now + LENGTH / 3, true));
        assert_eq!(clock.lapses(), 0);
    }

    #[test]
    fn the_store_says_that_it_lapsed() {
        let mut clock = LeaseClock::new(LENGTH);
        let now = Instant::now();
        clock.renewed(now, false);
        assert!(clock.renewed(now + LENGTH / 3, false));
        assert_eq!(clock.lapses(), 1);
    }

    #[test]
    fn a_process_that_stood_still_knows_better_than_the_store() {
        let mut clock = LeaseClock::new(LENGTH);
        let now = Instant::now();
        clock.renewed(now, false);
        assert!(clock.renewed(now + LENGTH, true));
        assert!(!clock.renewed(now + LENGTH + LENGTH / 3, true));
    }
}
