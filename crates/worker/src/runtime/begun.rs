//! The journaled calls that were begun here and are forgotten otherwise, so that none runs twice.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use shoal_ports::CallId;
use tokio::time::Instant;

use super::config::PoolConfig;

/// The results of a call may be gone this many times over before its id may be.
const RETENTIONS: u32 = 10;

/// Ids of journaled calls whose results are gone, within bounds of number and time.
///
/// The smallest ids go first, and the greatest of those that went is the horizon: whatever is not greater may
/// have run here. Ids are ordered by the time when they were made, so a call that is new is beyond it.
pub(super) struct Begun {
    ids: BTreeMap<CallId, Instant>,
    horizon: CallId,
    most: usize,
    retention: Duration,
}

impl Begun {
    /// Knows nothing of what was made before `since`: an earlier process of this worker's name may have
    /// run that.
    pub(super) fn new(config: &PoolConfig, since: SystemTime) -> Self {
        Self {
            ids: BTreeMap::new(),
            horizon: before(since),
            most: config.remembered_calls,
            retention: config.call_memory.max(config.result_retention * RETENTIONS),
        }
    }

    /// Whether a call that is not known otherwise may have been begun here.
    pub(super) fn may_have_run(&self, id: CallId) -> bool {
        id <= self.horizon || self.ids.contains_key(&id)
    }

    /// Remembers a call, at the cost of the one with the smallest id.
    pub(super) fn remember(&mut self, id: CallId, now: Instant) {
        self.ids.insert(id, now + self.retention);
        while self.ids.len() > self.most {
            self.pass_smallest();
        }
    }

    /// Forgets what has been remembered for long enough. One that stands behind a younger one of a smaller
    /// id stays a little longer, so that the horizon is never higher than it must be.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.ids.values().next().is_some_and(|until| *until <= now) {
            self.pass_smallest();
        }
    }

    fn pass_smallest(&mut self) {
        if let Some((id, _)) = self.ids.pop_first() {
            self.horizon = self.horizon.max(id);
        }
    }
}

/// The id below all that are made from `time` on.
fn before(time: SystemTime) -> CallId {
    let millis = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64);
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    CallId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use shoal_ports::CallId;
    use tokio::time::Instant;

    use super::Begun;
    use crate::PoolConfig;

    fn begun(most: usize) -> Begun {
        let config = PoolConfig {
            remembered_calls: most,
            ..PoolConfig::new("p")
        };
        Begun::new(&config, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn what_is_forgotten_leaves_a_horizon() {
        let mut begun = begun(2);
        let ids: [CallId; 5] = std::array::from_fn(|_| CallId::generate());
        let now = Instant::now();
        // Ends come in any order.
        for at in [3, 1, 2] {
            begun.remember(ids[at], now);
        }
        let known = ids.map(|id| begun.may_have_run(id));
        assert_eq!(known, [true, true, true, true, false]);
        begun.expire(now + Duration::from_secs(24 * 3600));
        assert!(begun.ids.is_empty() && begun.horizon == ids[3]);
    }

    #[test]
    fn time_is_at_least_ten_times_that_of_results() {
        let config = PoolConfig {
            call_memory: Duration::ZERO,
            ..PoolConfig::new("p")
        };
        let mut begun = Begun::new(&config, SystemTime::UNIX_EPOCH);
        let (id, now) = (CallId::generate(), Instant::now());
        begun.remember(id, now);
        begun.expire(now + config.result_retention * 9);
        assert_eq!(begun.ids.len(), 1);
        begun.expire(now + config.result_retention * 10);
        assert!(begun.ids.is_empty() && begun.may_have_run(id));
    }

    #[test]
    fn nothing_is_known_of_the_time_before() {
        let early = CallId::generate();
        std::thread::sleep(Duration::from_millis(2));
        let begun = Begun::new(&PoolConfig::new("p"), SystemTime::now());
        assert!(begun.may_have_run(early));
        assert!(!begun.may_have_run(CallId::generate()));
    }
}
