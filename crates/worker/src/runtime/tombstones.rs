//! The journaled calls that were taken or refused here and are forgotten otherwise, by the ledger's numbers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::RandomState;
use shoal_ports::{CallFailure, CallId, LedgerNumber};
use tokio::time::Instant;

use super::config::PoolConfig;

/// The results of a call may be gone this many times over before its id may be.
const RETENTIONS: u32 = 10;
/// How long a number lasts in which something was remembered.
const LASTS: Duration = Duration::from_secs(1);
/// The ids of one number are at most this part of all that are remembered.
const PART: usize = 64;

/// Ids of journaled calls, and what became of them, for the last numbers of the ledger.
///
/// The ledger counts on, by time on this machine's own monotonic clock and by what it remembers, and forgets whole
/// numbers, the oldest first. A call that was bound under a number that is still remembered, and is not known, was
/// neither taken nor refused under any binding that is not newer. A number in which nothing happened does not pass.
pub(super) struct Tombstones {
    incarnation: u64,
    /// The number of the first slot.
    oldest: u64,
    /// What was remembered under each number; the last is the present one.
    slots: VecDeque<Slot>,
    tombstones: HashMap<CallId, Tombstone, RandomState>,
    /// The greatest id that was forgotten: all that calls without a number can be compared with.
    horizon: Option<CallId>,
    /// Entries in all slots.
    entries: usize,
    most: usize,
    retention: Duration,
}

#[derive(Default)]
struct Slot {
    ids: Vec<CallId>,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// What became of a call, and under which number that was.
struct Tombstone {
    number: u64,
    /// Why it was refused; `None` where it was taken, and may have run. Boxed, being rare where there are many tombstones.
    refused: Option<Box<CallFailure>>,
}

fn retention(config: &PoolConfig) -> Duration {
    config.call_memory.max(config.result_retention * RETENTIONS)
}

impl Tombstones {
    pub(super) fn new(config: &PoolConfig) -> Self {
        Self {
            incarnation: rand::random(),
            oldest: 0,
            slots: VecDeque::from([Slot::default()]),
            tombstones: HashMap::default(),
            horizon: None,
            entries: 0,
            most: config.remembered_calls,
            retention: retention(config),
        }
    }

    /// Goes by other limits from now on.
    pub(super) fn limit(&mut self, config: &PoolConfig) {
        self.most = config.remembered_calls;
        self.retention = retention(config);
    }

    /// Where the ledger is.
    pub(super) fn number(&self) -> LedgerNumber {
        LedgerNumber {
            incarnation: self.incarnation,
            number: self.present(),
        }
    }

    /// Whether a call that is not known otherwise may be run, or refused for lack of room.
    ///
    /// # Errors
    /// The refusal that it has had under this number or a later one, and under any if it was to be cancelled;
    /// `OutcomeUnknown` where it was taken, or may have been.
    pub(super) fn check(&self, id: CallId, bound: Option<LedgerNumber>) -> Result<(), CallFailure> {
        let tombstone = self.tombstones.get(&id);
        let unknown = |reason: &str| Err(CallFailure::outcome_unknown(reason));
        match tombstone.map(|tombstone| tombstone.refused.as_deref()) {
            Some(None) => {
                return unknown("its worker may have run it before, and its result is gone");
            }
            // Whoever binds it anew does not know that it is to be cancelled.
            Some(Some(CallFailure::Cancelled)) => return Err(CallFailure::Cancelled),
            _ => {}
        }
        let Some(bound) = bound else {
            // By ids, which other machines' clocks made: sound, since all that was forgotten is below, but one that
            // is new is refused too where its maker's clock is behind by more than what is remembered.
            return match self.horizon {
                Some(horizon) if id <= horizon => {
                    unknown("its worker may have forgotten that it has run it")
                }
                _ => Ok(()),
            };
        };
        if bound.incarnation != self.incarnation {
            return unknown("its worker has started anew since the call was bound to it");
        }
        match tombstone {
            Some(Tombstone {
                number,
                refused: Some(failure),
            }) if bound.number <= *number => Err((**failure).clone()),
            _ if (self.oldest..=self.present()).contains(&bound.number) => Ok(()),
            _ => unknown("it was bound so long ago that its worker may have forgotten it"),
        }
    }

    /// Remembers a call that must not run again.
    pub(super) fn taken(&mut self, id: CallId, now: Instant) {
        self.remember(id, None, now);
    }

    /// Remembers why a call was refused.
    pub(super) fn refused(&mut self, id: CallId, failure: CallFailure, now: Instant) {
        self.remember(id, Some(failure), now);
    }

    /// Counts on if it is time, and forgets what has been remembered for long enough.
    pub(super) fn pass(&mut self, now: Instant) {
        self.count_on(now);
        while self.slots.len() > 1
            && let Some(last) = self.slots.front().and_then(|slot| slot.last)
            && last + self.retention <= now
        {
            self.forget_oldest();
        }
    }

    fn remember(&mut self, id: CallId, refused: Option<CallFailure>, now: Instant) {
        let number = self.present();
        let refused = refused.map(Box::new);
        let former = self.tombstones.insert(id, Tombstone { number, refused });
        let slot = self.slots.back_mut().expect("there is a present number");
        slot.first.get_or_insert(now);
        slot.last = Some(now);
        if former.is_none_or(|former| former.number != number) {
            slot.ids.push(id);
            self.entries += 1;
        }
        self.count_on(now);
        while self.entries > self.most {
            self.forget_oldest();
        }
    }

    fn count_on(&mut self, now: Instant) {
        let slot = self.slots.back().expect("there is a present number");
        let full = slot.ids.len() >= (self.most / PART).max(1);
        if full || slot.first.is_some_and(|first| first + LASTS <= now) {
            self.slots.push_back(Slot::default());
        }
    }

    fn forget_oldest(&mut self) {
        if self.slots.len() == 1 {
            self.slots.push_back(Slot::default());
        }
        let Some(slot) = self.slots.pop_front() else {
            return;
        };
        let number = self.oldest;
        self.oldest += 1;
        self.entries -= slot.ids.len();
        for id in slot.ids {
            self.horizon = self.horizon.max(Some(id));
            // It may have been remembered again since.
            if self
                .tombstones
                .get(&id)
                .is_some_and(|tombstone| tombstone.number == number)
            {
                self.tombstones.remove(&id);
            }
        }
    }

    fn present(&self) -> u64 {
        self.oldest + self.slots.len() as u64 - 1
    }
}

#[cfg(test)]
mod tests;
