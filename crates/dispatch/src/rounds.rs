//! Each `InputRequiredResult` begins a round.
//!
//! Every round is a separate call at the worker. Its id derives from call and round, so any node
//! that continues the call starts the same round, which runs once. Event numbers contain the round
//! above the worker's own number.

use sha2::{Digest as _, Sha256};
use shoal_ports::CallId;

/// Bits of the worker's own event number, above which the round stands.
const ROUND_SHIFT: u32 = 32;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventPosition {
    pub(crate) round: u32,
    /// 0 before the worker's first event.
    pub(crate) seen: u64,
}

impl EventPosition {
    pub(crate) fn of(sequence: u64) -> Self {
        Self {
            round: (sequence >> ROUND_SHIFT) as u32,
            seen: sequence & ((1 << ROUND_SHIFT) - 1),
        }
    }

    pub(crate) fn sequence(self) -> u64 {
        u64::from(self.round) << ROUND_SHIFT | self.seen
    }

    /// Questions that follow from the last event carry this position, so that a new reader receives the event again.
    pub(crate) fn before(self) -> Self {
        Self {
            seen: self.seen.saturating_sub(1),
            ..self
        }
    }
}

pub(crate) fn round_id(call: CallId, round: u32) -> CallId {
    if round == 0 {
        return call;
    }
    let hash = Sha256::new()
        .chain_update(b"shoal round")
        .chain_update(call.as_bytes())
        .chain_update(round.to_be_bytes())
        .finalize();
    let mut bytes = *call.as_bytes();
    // The first six bytes, the time, stay: from them, a worker of an older release tells whether it may have
    // forgotten the call.
    bytes[6..].copy_from_slice(&hash[..10]);
    bytes[6] = 0x70 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    CallId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use shoal_ports::CallId;

    use super::{EventPosition, round_id};

    #[test]
    fn rounds_have_ids_of_their_own_and_of_the_same_time() {
        let call = CallId::generate();
        let ids: HashSet<CallId> = (0..100).map(|round| round_id(call, round)).collect();
        assert!(ids.len() == 100 && ids.contains(&call));
        for id in ids {
            assert_eq!(id.as_bytes()[..6], call.as_bytes()[..6]);
            assert_eq!(id.as_bytes()[6] >> 4, 7);
            assert_eq!(id.as_bytes()[8] >> 6, 0b10);
        }
        assert_eq!(round_id(call, 3), round_id(call, 3));
        assert_ne!(round_id(call, 3), round_id(CallId::generate(), 3));
    }

    #[test]
    fn numbers_grow_from_round_to_round() {
        for (round, seen) in [(0, 0), (0, 9), (1, 0), (1, 4_000_000_000), (70_000, 1)] {
            let position = EventPosition { round, seen };
            assert_eq!(EventPosition::of(position.sequence()), position);
        }
        let last = EventPosition { round: 0, seen: 7 };
        let next = EventPosition { round: 1, seen: 0 };
        assert_eq!(last.sequence(), 7);
        assert!(last.before().sequence() < last.sequence() && last.sequence() < next.sequence());
        assert_eq!(next.before(), next);
    }
}
