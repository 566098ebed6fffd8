//! How far the clocks of peers are from this process's, measured by the pings of links.
//!
//! A ping carries the time at which it was asked, which the pong repeats beside the peer's own. The peer answered
//! somewhere between, so half of the round trip is what is not known. For operators only: nothing decides by it.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

/// A round trip that takes longer says nothing of clocks: one of the two processes stood still.
const LONGEST_US: u64 = 10_000_000;

/// What each link that is up has measured last: by how much the clocks differ at least, in microseconds.
static LINKS: LazyLock<Mutex<HashMap<u64, u64>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The measure of one link; forgotten with it.
pub(crate) struct Skew(u64);

impl Skew {
    pub(crate) fn new() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Notes an answer that came at `now` to what was asked at `asked`, both by this process's clock, when the peer's
    /// showed `peer`; 0 for a peer that does not say.
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

/// By how much this process's clock differs at least from that of the peer that is furthest from it, of those that are
/// linked now; `None` while none has told. Measured when a link falls silent.
#[must_use]
pub fn clock_skew() -> Option<Duration> {
    LINKS
        .lock()
        .values()
        .max()
        .copied()
        .map(Duration::from_micros)
}

/// This process's clock, in microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
}

/// By how much two clocks differ, whenever the peer looked at its own between asking and hearing.
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
            // The peer does not say; the own clock was set back; a process stood still.
            (100, 200, 0, None),
            (200, 100, 150, None),
            (0, LONGEST_US + 1, 1, None),
        ] {
            assert_eq!(skew(asked, now, peer), is, "{asked} {now} {peer}");
        }
    }

    #[test]
    fn the_furthest_of_the_peers_that_are_there_counts() {
        // Far beyond what the links of other tests measure.
        let (near, far) = (Skew::new(), Skew::new());
        let hours = |hours: u64| hours * 3_600_000_000;
        near.note(hours(10), hours(10), hours(11));
        far.note(hours(10), hours(10), hours(7));
        assert_eq!(clock_skew(), Some(Duration::from_secs(3 * 3600)));
        drop(far);
        assert_eq!(clock_skew(), Some(Duration::from_secs(3600)));
    }
}
