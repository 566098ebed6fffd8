//! Remembers callers' proofs, as long as they could be replayed.
//!
//! A proof's date is signed, so a replay has the same date. Proofs are kept in slices by date. A slice is
//! dropped when all of its proofs have expired.
//!
//! Principals share the memory. Each may hold a part of the free memory, at most a fifth of the total, so
//! that there is always room for the next.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use foldhash::fast::RandomState as Fast;
use parking_lot::Mutex;
use shoal_ports::Principal;
use tokio::time::Instant;

pub(crate) const SLICE: Duration = Duration::from_secs(10);
/// Approximate bytes of a proof, and of a principal.
const PROOF: usize = 24;
const OWNER: usize = 80;
/// A principal may hold the free memory divided by this.
const PART: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof<'a> {
    pub(crate) thumbprint: [u8; 32],
    pub(crate) name: &'a str,
    pub(crate) date: Duration,
    pub(crate) left: Duration,
}

pub(crate) struct Replays {
    most_bytes: usize,
    /// A random key keeps callers from causing collisions.
    hasher: RandomState,
    seen: Mutex<SeenProofs>,
}

#[derive(Default)]
struct SeenProofs {
    slices: BTreeMap<u64, Slice>,
    bytes: usize,
    bytes_of: HashMap<u64, usize, Fast>,
}

struct Slice {
    proofs: HashSet<u64, Fast>,
    bytes_of: HashMap<u64, usize, Fast>,
    /// By the monotonic clock.
    until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProofShown {
    First,
    Again,
    /// Without room to remember the proof, it must be refused.
    Full,
}

impl Replays {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            hasher: RandomState::new(),
            seen: Mutex::default(),
        }
    }

    pub(crate) fn show(&self, principal: &Principal, proof: Proof<'_>) -> ProofShown {
        let owner = self.hasher.hash_one(principal);
        let hash = self.hasher.hash_one((proof.thumbprint, proof.name));
        let now = Instant::now();
        let until = now + proof.left;
        let mut seen = self.seen.lock();
        seen.forget(now);
        let date = proof.date.as_secs() / SLICE.as_secs();
        let slice = seen.slices.get(&date);
        if slice.is_some_and(|slice| slice.proofs.contains(&hash)) {
            return ProofShown::Again;
        }
        let is_known = slice.is_some_and(|slice| slice.bytes_of.contains_key(&owner));
        let bytes = if is_known { PROOF } else { PROOF + OWNER };
        let own = seen.bytes_of.get(&owner).copied().unwrap_or_default();
        if own + bytes > self.most_bytes.saturating_sub(seen.bytes) / PART {
            return ProofShown::Full;
        }
        seen.bytes += bytes;
        *seen.bytes_of.entry(owner).or_default() += bytes;
        let slice = seen.slices.entry(date).or_insert_with(|| Slice {
            proofs: HashSet::default(),
            bytes_of: HashMap::default(),
            until,
        });
        slice.until = slice.until.max(until);
        slice.proofs.insert(hash);
        *slice.bytes_of.entry(owner).or_default() += bytes;
        ProofShown::First
    }
}

impl SeenProofs {
    fn forget(&mut self, now: Instant) {
        while let Some(oldest) = self.slices.first_entry()
            && oldest.get().until < now
        {
            for (owner, bytes) in oldest.remove().bytes_of {
                self.bytes -= bytes;
                if let Some(all) = self.bytes_of.get_mut(&owner) {
                    *all -= bytes;
                    if *all == 0 {
                        self.bytes_of.remove(&owner);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::Principal;
    use tokio::time::advance;

    use super::{OWNER, PROOF, Proof, ProofShown, Replays, SLICE};

    const LEFT: Duration = Duration::from_secs(120);

    fn proof(name: &str, date: u64) -> Proof<'_> {
        Proof {
            thumbprint: [1; 32],
            name,
            date: Duration::from_secs(date),
            left: LEFT,
        }
    }

    fn show_all(replays: &Replays, principal: &str, date: u64) -> usize {
        let principal = Principal::new(principal);
        let name = |number: usize| format!("{principal}{date}-{number}");
        let mut shown = 0..;
        let full = |number: &usize| {
            replays.show(&principal, proof(&name(*number), date)) == ProofShown::Full
        };
        shown.find(full).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_proof_is_known_for_as_long_as_it_would_be_taken() {
        let replays = Replays::new(1 << 20);
        let alice = Principal::new("alice");
        assert_eq!(replays.show(&alice, proof("a", 1000)), ProofShown::First);
        assert_eq!(replays.show(&alice, proof("a", 1000)), ProofShown::Again);
        assert_eq!(replays.show(&alice, proof("b", 1000)), ProofShown::First);
        advance(LEFT).await;
        let late = Proof {
            left: Duration::ZERO,
            ..proof("a", 1000)
        };
        assert_eq!(replays.show(&alice, late), ProofShown::Again);
        assert_eq!(replays.show(&alice, proof("c", 1130)), ProofShown::First);
        advance(SLICE).await;
        assert_eq!(replays.show(&alice, proof("c", 1130)), ProofShown::Again);
        let seen = replays.seen.lock();
        assert_eq!((seen.slices.len(), seen.bytes), (1, PROOF + OWNER));
        assert_eq!(seen.bytes_of.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_shows_most_leaves_room_for_all_others() {
        let most = 256 << 10;
        let replays = Replays::new(most);
        let mut before = usize::MAX;
        for hostile in 1..=20 {
            let shown = show_all(&replays, &format!("hostile-{hostile}"), 1000);
            assert!((1..=before).contains(&shown), "{hostile}: {shown}");
            before = shown;
        }
        assert!(replays.seen.lock().bytes <= most);
        for honest in ["one", "two", "three"] {
            let shown = replays.show(&Principal::new(honest), proof(honest, 1000));
            assert_eq!(shown, ProofShown::First);
        }
        advance(LEFT * 2).await;
        let again = show_all(&replays, "hostile-1", 1200);
        assert!(again > most / PROOF / 6, "{again}");
    }
}
