//! Measures, for operators only, how far peers' clocks are from this process's clock.
//!
//! A pong repeats the time of its ping and adds the peer's time. The difference is uncertain by
//! half of the round trip.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

/// Maximum round trip, in microseconds. A longer one means that a process was suspended.
const LONGEST_US: u64 = 10_000_000;

/// The least possible difference that each link measured last, in microseconds.
static LINKS: LazyLock<Mutex<HashMap<u64, u64>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Skew(u64);

impl Skew {
    pub(crate) fn new() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Times are of this process's clock, except `peer`, which is 0 if unknown.
    pub(crate) fn note(&self, asked: u64, now: u64, peer: u64) {
        if let Some(skew) = skew(asked, now, peer) {
            LINKS.lock().insert(self.0, skew);
        }
    }
}

impl Drop for Skew {
    fn drop(&mut self) {
        LINKS.lock().remove(&self.0);
    }
}

/// Returns the least possible difference to the clock that is furthest off; `None` without a
/// measurement. Links measure when they fall silent.
#[must_use]
pub fn clock_skew() -> Option<Duration> {
    LINKS
        .lock()
        .values()
        .max()
        .copied()
        .map(Duration::from_micros)
}

pub(crate) fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
}

fn skew(asked: u64, now: u64, peer: u64) -> Option<u64> {
    let trip = now.checked_sub(asked)?;
    (peer > 0 && trip <= LONGEST_US)
        .then(|| asked.saturating_sub(peer).max(peer.saturating_sub(now)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LONGEST_US, Skew, clock_skew, skew};

    #[test]
    fn what_a_round_trip_leaves_open_is_no_skew() {
        for (asked, now, peer, is) in [
            (100, 200, 100, Some(0)),
            (100, 200, 150, Some(0)),
            (100, 200, 200, Some(0)),
            (100, 200, 201, Some(1)),
            (100, 200, 90, Some(10)),
            (100, 200, 5_000_200, Some(5_000_000)),
            (100, 200, 0, None),
            (200, 100, 150, None),
            (0, LONGEST_US + 1, 1, None),
        ] {
            assert_eq!(skew(asked, now, peer), is, "{asked} {now} {peer}");
        }
    }

    #[test]
    fn the_furthest_of_the_peers_that_are_there_counts() {
        let (near, far) = (Skew::new(), Skew::new());
        let hours = |hours: u64| hours * 3_600_000_000;
        near.note(hours(10), hours(10), hours(11));
        far.note(hours(10), hours(10), hours(7));
        assert_eq!(clock_skew(), Some(Duration::from_secs(3 * 3600)));
        drop(far);
        assert_eq!(clock_skew(), Some(Duration::from_secs(3600)));
    }
}
