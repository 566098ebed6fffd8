//! Which proofs were shown before, for as long as they could be shown again.

use std::collections::HashSet;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Remembers for at least a time, and for twice that at most.
pub(crate) struct Replays {
    remembered_for: Duration,
    most: usize,
    seen: Mutex<Seen>,
}

struct Seen {
    now: HashSet<[u8; 32]>,
    before: HashSet<[u8; 32]>,
    turned: Instant,
}

/// What becomes of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    First,
    Again,
    /// There is no room to remember it, so that it could be shown again.
    Full,
}

impl Replays {
    pub(crate) fn new(remembered_for: Duration, most: usize) -> Self {
        Self {
            remembered_for,
            most,
            seen: Mutex::new(Seen {
                now: HashSet::new(),
                before: HashSet::new(),
                turned: Instant::now(),
            }),
        }
    }

    /// Remembers a proof.
    pub(crate) fn show(&self, proof: [u8; 32]) -> Shown {
        let mut seen = self.seen.lock();
        let age = seen.turned.elapsed();
        if age >= self.remembered_for {
            let last = std::mem::take(&mut seen.now);
            // What was not shown within two turns cannot be shown any more.
            seen.before = match age < self.remembered_for * 2 {
                true => last,
                false => HashSet::new(),
            };
            seen.turned = Instant::now();
        }
        if seen.now.contains(&proof) || seen.before.contains(&proof) {
            return Shown::Again;
        }
        if seen.now.len() + seen.before.len() >= self.most {
            return Shown::Full;
        }
        seen.now.insert(proof);
        Shown::First
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Replays, Shown};

    #[tokio::test(start_paused = true)]
    async fn a_proof_is_remembered_for_its_time_and_there_are_so_many_at_most() {
        let replays = Replays::new(Duration::from_secs(10), 3);
        assert_eq!(replays.show([1; 32]), Shown::First);
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(replays.show([2; 32]), Shown::First);
        tokio::time::advance(Duration::from_secs(9)).await;
        // The second is nine seconds old.
        assert_eq!(replays.show([2; 32]), Shown::Again);
        assert_eq!(replays.show([3; 32]), Shown::First);
        assert_eq!(replays.show([4; 32]), Shown::Full);
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(replays.show([4; 32]), Shown::First);
        assert_eq!(replays.show([1; 32]), Shown::First);
    }
}
