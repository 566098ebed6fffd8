//! The calls that readers can attach to: running ones, and ended ones for some time. Ids of taken
//! or refused calls stay longer.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use dashmap::{DashMap, Entry};
use foldhash::fast::RandomState;
use parking_lot::{Mutex, RwLock};
use shoal_ports::{Call, CallFailure, CallId, LedgerNumber, MayStart, Repeat};
use tokio::time::Instant;

use super::config::PoolConfig;
use super::record::CallRecord;
use super::tombstones::Tombstones;

const SWEEP: Duration = Duration::from_secs(1);
/// An acknowledgement has no effect on older calls.
const LOOKED_BACK: usize = 4096;

pub(super) struct CallLedger {
    calls: DashMap<CallId, Arc<CallRecord>, RandomState>,
    retired: Mutex<Retired>,
    tombstones: Mutex<Tombstones>,
    limits: RwLock<LedgerLimits>,
}

#[derive(Clone, Copy)]
struct LedgerLimits {
    retention: Duration,
    deserted_after: Duration,
    most_calls: usize,
    most_bytes: usize,
}

impl LedgerLimits {
    fn of(config: &PoolConfig) -> Self {
        Self {
            retention: config.result_retention.get(),
            deserted_after: config.deserted_after,
            most_calls: config.retained_results,
            most_bytes: config.retained_bytes,
        }
    }
}

#[derive(Default)]
struct Retired {
    calls: VecDeque<RetiredCall>,
    bytes: usize,
}

struct RetiredCall {
    id: CallId,
    until: Instant,
    bytes: usize,
}

pub(super) enum Entered<T> {
    New(Arc<CallRecord>, T),
    Known(Arc<CallRecord>),
}

impl CallLedger {
    pub(super) fn start(config: &PoolConfig) -> Arc<Self> {
        let ledger = Self::new(config);
        tokio::spawn(sweep(Arc::downgrade(&ledger)));
        ledger
    }

    fn new(config: &PoolConfig) -> Arc<Self> {
        Arc::new(Self {
            calls: DashMap::default(),
            retired: Mutex::default(),
            tombstones: Mutex::new(Tombstones::new(config)),
            limits: RwLock::new(LedgerLimits::of(config)),
        })
    }

    pub(super) fn limit(&self, config: &PoolConfig) {
        *self.limits.write() = LedgerLimits::of(config);
        self.tombstones.lock().limit(config);
    }

    pub(super) fn deserted_after(&self) -> Duration {
        self.limits.read().deserted_after
    }

    pub(super) fn number(&self) -> LedgerNumber {
        self.tombstones.lock().number()
    }

    /// Enters a call that `admit` accepts, or returns the known call with the same id.
    ///
    /// # Errors
    /// `OutcomeUnknown` for a journaled call that may have run here; the refusal of `admit`, now or before;
    /// `Cancelled` for an unknown call that may not start.
    pub(super) fn enter<T>(
        self: &Arc<Self>,
        call: &Call,
        number: Option<LedgerNumber>,
        admit: impl FnOnce() -> Result<T, CallFailure>,
    ) -> Result<Entered<T>, CallFailure> {
        match self.calls.entry(call.id) {
            Entry::Occupied(known) => Ok(Entered::Known(Arc::clone(known.get()))),
            Entry::Vacant(vacant) => {
                // The entry stays locked, and a call gets its tombstone before its entry is
                // removed, so this finds one of the two.
                let journaled = call.repeat == Repeat::Never;
                if journaled {
                    self.tombstones.lock().check(call.id, number)?;
                }
                let admission = match call.may_start {
                    MayStart::No => Err(CallFailure::Cancelled),
                    MayStart::Yes | MayStart::IfApproved => admit(),
                };
                let admission = admission.inspect_err(|failure| {
                    // A refusal is final for this binding, so the caller can bind the call elsewhere.
                    if journaled {
                        let mut tombstones = self.tombstones.lock();
                        tombstones.refused(call.id, failure.clone(), Instant::now());
                    }
                })?;
                let record = CallRecord::new(call, Arc::downgrade(self), true);
                vacant.insert(Arc::clone(&record));
                Ok(Entered::New(record, admission))
            }
        }
    }

    /// Admits a repeatable call, which enters the ledger only by [`keep`](Self::keep). A call that
    /// ends in its first turn needs no entry.
    pub(super) fn enter_later<T>(
        self: &Arc<Self>,
        call: &Call,
        admit: impl FnOnce() -> Result<T, CallFailure>,
    ) -> Result<Entered<T>, CallFailure> {
        if let Some(known) = self.find(call.id) {
            return Ok(Entered::Known(known));
        }
        let admission = admit()?;
        let record = CallRecord::new(call, Arc::downgrade(self), false);
        Ok(Entered::New(record, admission))
    }

    pub(super) fn keep(&self, record: &Arc<CallRecord>) {
        if !record.is_kept() {
            self.calls.insert(record.id, Arc::clone(record));
            record.kept();
        }
    }

    pub(super) fn find(&self, id: CallId) -> Option<Arc<CallRecord>> {
        self.calls.get(&id).map(|record| Arc::clone(&record))
    }

    pub(super) fn open(&self) -> Vec<Arc<CallRecord>> {
        let open = self.calls.iter().filter(|record| !record.has_ended());
        open.map(|record| Arc::clone(&record)).collect()
    }

    /// For older ones, no reader is expected any more.
    pub(super) fn undelivered(&self) -> usize {
        let now = Instant::now();
        let limits = *self.limits.read();
        let retired = self.retired.lock();
        let recent = retired.calls.iter().rev();
        let recent =
            recent.take_while(|kept| now + limits.retention < kept.until + limits.deserted_after);
        let ids: Vec<CallId> = recent.map(|kept| kept.id).collect();
        drop(retired);
        let records = ids.into_iter().filter_map(|id| self.find(id));
        records.filter(|record| record.awaits_reader()).count()
    }

    pub(super) fn waits_longest(&self) -> Option<Duration> {
        let waiting = self.calls.iter().filter(|record| record.waits());
        waiting.map(|record| record.admitted.elapsed()).max()
    }

    pub(super) fn retire(&self, id: CallId, bytes: usize) {
        let limits = *self.limits.read();
        let until = Instant::now() + limits.retention;
        let mut retired = self.retired.lock();
        retired.bytes += bytes;
        retired.calls.push_back(RetiredCall { id, until, bytes });
        let mut surplus = Vec::new();
        while retired.calls.len() > limits.most_calls || retired.bytes > limits.most_bytes {
            surplus.extend(retired.pop());
        }
        drop(retired);
        self.forget_all(surplus);
    }

    pub(super) fn acknowledge(&self, id: CallId) {
        // The answer can be a refusal of a call that never came here.
        if !self.calls.contains_key(&id) {
            return;
        }
        let retired = self.retired.lock().remove(id);
        if retired {
            self.forget(id);
        }
    }

    /// Leaves a tombstone if the call must not run again.
    pub(super) fn forget(&self, id: CallId) {
        self.calls.remove_if(&id, |_, record| {
            let now = Instant::now();
            match record.refused() {
                Some(failure) => self.tombstones.lock().refused(id, failure, now),
                None if record.runs_once() => self.tombstones.lock().taken(id, now),
                None => {}
            }
            true
        });
    }

    fn forget_expired(&self, now: Instant) {
        let mut expired = Vec::new();
        let mut retired = self.retired.lock();
        while retired.calls.front().is_some_and(|kept| kept.until <= now) {
            expired.extend(retired.pop());
        }
        drop(retired);
        self.forget_all(expired);
        self.tombstones.lock().pass(now);
    }

    fn forget_all(&self, ids: Vec<CallId>) {
        for id in ids {
            self.forget(id);
        }
    }
}

impl Retired {
    fn pop(&mut self) -> Option<CallId> {
        let kept = self.calls.pop_front()?;
        self.bytes -= kept.bytes;
        Some(kept.id)
    }

    fn remove(&mut self, id: CallId) -> bool {
        let newest = self.calls.iter().rev().take(LOOKED_BACK);
        let Some(back) = newest.into_iter().position(|kept| kept.id == id) else {
            return false;
        };
        let kept = self.calls.remove(self.calls.len() - 1 - back);
        self.bytes -= kept.map_or(0, |kept| kept.bytes);
        true
    }
}

async fn sweep(ledger: Weak<CallLedger>) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let now = ticks.tick().await;
        let Some(ledger) = ledger.upgrade() else {
            return;
        };
        ledger.forget_expired(now);
    }
}

#[cfg(test)]
mod tests;
