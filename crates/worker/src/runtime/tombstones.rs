use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::RandomState;
use shoal_ports::{CallFailure, CallId, LedgerNumber};
use tokio::time::Instant;

use super::config::PoolConfig;

/// Minimum time for which ids stay, as a multiple of the time for results.
const RETENTIONS: u32 = 10;
const LASTS: Duration = Duration::from_secs(1);
/// One number has at most one `PART`th of the remembered ids.
const PART: usize = 64;

/// Ids and fates of journaled calls under the ledger's recent numbers.
///
/// The number grows with time (monotonic clock) and entries, but not while it has no entries. The
/// ids of a number are forgotten together, the oldest number first. If a binding's number is
/// remembered and the call's id is not, the call was neither taken nor refused since the binding.
pub(super) struct Tombstones {
    incarnation: u64,
    oldest: u64,
    slots: VecDeque<TombstoneSlot>,
    tombstones: HashMap<CallId, Tombstone, RandomState>,
    /// The greatest forgotten id, which decides about calls without a number.
    horizon: Option<CallId>,
    entries: usize,
    most: usize,
    retention: Duration,
}

#[derive(Default)]
struct TombstoneSlot {
    ids: Vec<CallId>,
    first: Option<Instant>,
    last: Option<Instant>,
}

struct Tombstone {
    number: u64,
    /// `None` if the worker took the call, which may have run. Boxed because refusals are rare.
    refused: Option<Box<CallFailure>>,
}

fn retention(config: &PoolConfig) -> Duration {
    (config.call_memory.get()).max(config.result_retention.get() * RETENTIONS)
}

impl Tombstones {
    pub(super) fn new(config: &PoolConfig) -> Self {
        Self {
            incarnation: rand::random(),
            oldest: 0,
            slots: VecDeque::from([TombstoneSlot::default()]),
            tombstones: HashMap::default(),
            horizon: None,
            entries: 0,
            most: config.remembered_calls,
            retention: retention(config),
        }
    }

    pub(super) fn limit(&mut self, config: &PoolConfig) {
        self.most = config.remembered_calls;
        self.retention = retention(config);
    }

    pub(super) fn number(&self) -> LedgerNumber {
        LedgerNumber {
            incarnation: self.incarnation,
            number: self.present(),
        }
    }

    /// Checks whether the worker may run a call that is not in the ledger.
    ///
    /// # Errors
    /// The remembered refusal, if its number is not before the binding's; a remembered `Cancelled`, whatever its
    /// number; `OutcomeUnknown` if the worker may have taken the call.
    pub(super) fn check(&self, id: CallId, bound: Option<LedgerNumber>) -> Result<(), CallFailure> {
        let tombstone = self.tombstones.get(&id);
        let unknown = |reason: &str| Err(CallFailure::outcome_unknown(reason));
        match tombstone.map(|tombstone| tombstone.refused.as_deref()) {
            Some(None) => {
                return unknown("its worker may have run it before, and its result is gone");
            }
            // A later binding does not know of the cancellation.
            Some(Some(CallFailure::Cancelled)) => return Err(CallFailure::Cancelled),
            _ => {}
        }
        let Some(bound) = bound else {
            // Refuses all forgotten ids, which are below the horizon. A new id is refused too if the clock of
            // the node that made it lags too much.
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

    pub(super) fn taken(&mut self, id: CallId, now: Instant) {
        self.remember(id, None, now);
    }

    pub(super) fn refused(&mut self, id: CallId, failure: CallFailure, now: Instant) {
        self.remember(id, Some(failure), now);
    }

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
            self.slots.push_back(TombstoneSlot::default());
        }
    }

    fn forget_oldest(&mut self) {
        if self.slots.len() == 1 {
            self.slots.push_back(TombstoneSlot::default());
        }
        let Some(slot) = self.slots.pop_front() else {
            return;
        };
        let number = self.oldest;
        self.oldest += 1;
        self.entries -= slot.ids.len();
        for id in slot.ids {
            self.horizon = self.horizon.max(Some(id));
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
