use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shoal_ports::Renewal;
use tokio::time::Instant;

/// This node's copy of its lease. Its time counts from the start of a renewal, so it ends no later than the lease in
/// the store.
#[derive(Debug)]
pub(crate) struct LeaseClock {
    length: Duration,
    renewed: Option<Instant>,
    lapses: u64,
}

impl LeaseClock {
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            length,
            renewed: None,
            lapses: 0,
        }
    }

    /// The renewal started at `asked`. The first lease counts as kept. A lease that lapsed by this node's clock
    /// counts as begun anew: an abandoned renewal may reach the store after the lapse, and then the store's answer to
    /// the next renewal hides the lapse.
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

    pub(crate) fn ended(&mut self) {
        self.renewed = None;
    }

    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        self.renewed.map_or(Duration::ZERO, |renewed| {
            (renewed + self.length).saturating_duration_since(now)
        })
    }

    pub(crate) fn lapses(&self) -> u64 {
        self.lapses
    }
}

/// Whether the node may rely on its lease. Checked for every message.
#[derive(Debug)]
pub(crate) struct Certainty {
    since: Instant,
    /// When the lease ends, in microseconds since `since`.
    until: AtomicU64,
    /// How often other nodes may have claimed sessions.
    doubts: AtomicU64,
    /// Value of `doubts` before the last complete check of ownership.
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
    pub(crate) fn renewed(&self, until: Instant) {
        self.until.store(self.micros(until), Ordering::Release);
    }

    pub(crate) fn ended(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// Records that other nodes may have claimed sessions. Call it before [`renewed`](Self::renewed), so that the new
    /// lease is not trusted in between.
    pub(crate) fn doubted(&self) {
        self.doubts.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn doubts(&self) -> u64 {
        self.doubts.load(Ordering::Acquire)
    }

    pub(crate) fn settled(&self, doubts: u64) {
        self.settled.store(doubts, Ordering::Release);
    }

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
