//! The node's own lease, by its own clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shoal_ports::Renewal;
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

    /// Notes a renewal that was asked for at `asked`, and what the store has found. Returns what is to be made of that:
    /// the first lease is kept, and one that has lapsed by this node's clock has begun anew.
    ///
    /// The store's word is not enough: a renewal that was given up may be carried out late, after a lapse,
    /// and then the next one finds the lease alive.
    pub(crate) fn renewed(&mut self, asked: Instant, found: Renewal) -> Renewal {
        let first = self.renewed.is_none();
        let found = match found {
            _ if first => Renewal::Kept,
            _ if self.remaining(asked).is_zero() => Renewal::Begun,
            found => found,
        };
        self.renewed = Some(asked);
        self.lapses += u64::from(found == Renewal::Begun);
        found
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

/// Whether the node can take its lease for granted: what is asked with every message.
#[derive(Debug)]
pub(crate) struct Certainty {
    since: Instant,
    /// When the lease ends that was confirmed last, in microseconds since `since`.
    until: AtomicU64,
    /// How often others may have claimed what the node held.
    doubts: AtomicU64,
    /// How many of these have been looked after.
    settled: AtomicU64,
}

impl Default for Certainty {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            until: AtomicU64::new(0),
            doubts: AtomicU64::new(0),
            settled: AtomicU64::new(0),
        }
    }
}

impl Certainty {
    /// A renewal was confirmed, and the lease lasts until `until`.
    pub(crate) fn renewed(&self, until: Instant) {
        self.until.store(self.micros(until), Ordering::Release);
    }

    /// The lease was ended.
    pub(crate) fn ended(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// Others may have claimed. To be said before the renewal that has found it is noted.
    pub(crate) fn doubted(&self) {
        self.doubts.fetch_add(1, Ordering::AcqRel);
    }

    /// How often others may have claimed by now.
    pub(crate) fn doubts(&self) -> u64 {
        self.doubts.load(Ordering::Acquire)
    }

    /// What was doubtful when there were so many `doubts` is so no more.
    pub(crate) fn settled(&self, doubts: u64) {
        self.settled.store(doubts, Ordering::Release);
    }

    /// Whether what the node held is its own.
    pub(crate) fn holds(&self, now: Instant) -> bool {
        self.micros(now) < self.until.load(Ordering::Acquire)
            && self.settled.load(Ordering::Acquire) == self.doubts()
    }

    fn micros(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.since).as_micros();
        u64::try_from(since).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::Renewal::{Begun, Contested, Kept};
    use tokio::time::Instant;

    use super::{Certainty, LeaseClock};

    const LENGTH: Duration = Duration::from_secs(6);

    #[test]
    fn the_first_renewal_is_no_lapse() {
        let mut clock = LeaseClock::new(LENGTH);
        let now = Instant::now();
        assert_eq!(clock.remaining(now), Duration::ZERO);
        assert_eq!(clock.renewed(now, Begun), Kept);
        assert_eq!(clock.remaining(now + LENGTH / 3), LENGTH * 2 / 3);
        assert_eq!(clock.renewed(now + LENGTH / 3, Kept), Kept);
        assert_eq!(clock.lapses(), 0);
    }

    #[test]
    fn the_store_says_that_it_lapsed() {
        let mut clock = LeaseClock::new(LENGTH);
        let now = Instant::now();
        clock.renewed(now, Begun);
        assert_eq!(clock.renewed(now + LENGTH / 3, Begun), Begun);
        assert_eq!(clock.lapses(), 1);
    }

    #[test]
    fn the_store_says_that_others_have_claimed() {
        let mut clock = LeaseClock::new(LENGTH);
        let now = Instant::now();
        clock.renewed(now, Begun);
        assert_eq!(clock.renewed(now + LENGTH / 3, Contested), Contested);
        assert_eq!(clock.lapses(), 0, "it has lived on");
    }

    #[test]
    fn a_process_that_stood_still_knows_better_than_the_store() {
        let mut clock = LeaseClock::new(LENGTH);
        let now = Instant::now();
        clock.renewed(now, Begun);
        assert_eq!(clock.renewed(now + LENGTH, Kept), Begun);
        assert_eq!(clock.renewed(now + LENGTH + LENGTH / 3, Kept), Kept);
    }

    #[test]
    fn a_lease_is_certain_until_it_ends_or_is_doubted() {
        let certainty = Certainty::default();
        let now = Instant::now();
        assert!(!certainty.holds(now), "there is none");
        certainty.renewed(now + LENGTH);
        assert!(certainty.holds(now));
        assert!(!certainty.holds(now + LENGTH));
        certainty.doubted();
        let doubts = certainty.doubts();
        certainty.doubted();
        certainty.settled(doubts);
        assert!(
            !certainty.holds(now),
            "one came while that was looked after"
        );
        certainty.settled(certainty.doubts());
        assert!(certainty.holds(now));
        certainty.ended();
        assert!(!certainty.holds(now));
    }
}
