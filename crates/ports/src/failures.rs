use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

use foldhash::fast::RandomState as Fast;
use shoal_protocol::Method;
use tokio::time::Instant;

use crate::{Caller, Principal, SessionId};

const ENTRIES: usize = 1024;
const OF_CALLER: usize = 32;

/// A hashed caller and operation. Failures depend on arguments, so they say more about this pair
/// than about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FailureKey {
    caller: Option<u64>,
    operation: u64,
}

impl FailureKey {
    /// Makes a key for each caller, method and tool. Without authentication, the session counts as
    /// the caller.
    #[must_use]
    pub fn of(caller: &Caller, method: &Method, tool: Option<&str>) -> Self {
        Self::of_principal(&caller.principal, caller.session.as_ref(), method, tool)
    }

    /// Like [`of`](Self::of).
    #[must_use]
    pub fn of_principal(
        principal: &Principal,
        session: Option<&SessionId>,
        method: &Method,
        tool: Option<&str>,
    ) -> Self {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let name = match *principal == Principal::anonymous() {
            false => Some(("principal", principal.as_str())),
            true => session.map(|session| ("session", session.as_str())),
        };
        Self {
            caller: name.map(|name| KEYS.hash_one(name)),
            operation: KEYS.hash_one((method, tool)),
        }
    }

    /// Whether both keys have the same caller.
    #[must_use]
    pub fn is_of_caller_of(&self, other: &Self) -> bool {
        self.caller == other.caller
    }

    /// Whether the caller is unknown. Do not refuse an unknown caller, because other callers may
    /// have caused the failures.
    #[must_use]
    pub fn is_anybodys(&self) -> bool {
        self.caller.is_none()
    }
}

/// Failure records by key. Each expires after the [`keeping`](Self::keeping) time without a
/// failure. A new record displaces the oldest of its caller if the caller has its full share, or
/// the oldest of all if the table is full.
#[derive(Debug)]
pub struct FailureTable<T> {
    entries: HashMap<FailureKey, Noted<T>, Fast>,
    keep: Duration,
    sweep_at: Option<Instant>,
}

#[derive(Debug)]
struct Noted<T> {
    value: T,
    last: Instant,
}

impl<T: Default> FailureTable<T> {
    /// Makes a table of records that live for `keep`.
    #[must_use]
    pub fn keeping(keep: Duration) -> Self {
        Self {
            entries: HashMap::default(),
            keep,
            sweep_at: None,
        }
    }

    /// Returns a key's record.
    pub fn get(&mut self, key: &FailureKey) -> Option<&mut T> {
        Some(&mut self.entries.get_mut(key)?.value)
    }

    /// Records a failure.
    pub fn note(&mut self, key: FailureKey) -> &mut T {
        let now = Instant::now();
        self.sweep();
        if !self.entries.contains_key(&key) {
            self.make_room(&key);
        }
        let noted = self.entries.entry(key).or_insert_with(|| Noted {
            value: T::default(),
            last: now,
        });
        noted.last = now;
        &mut noted.value
    }

    /// Removes a key's record.
    pub fn forget(&mut self, key: &FailureKey) -> Option<T> {
        Some(self.entries.remove(key)?.value)
    }

    /// Whether there are no records.
    pub fn is_empty(&mut self) -> bool {
        self.sweep();
        self.entries.is_empty()
    }

    /// Returns all records.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.values().map(|noted| &noted.value)
    }

    fn sweep(&mut self) {
        let now = Instant::now();
        if self.sweep_at.is_some_and(|at| now < at) {
            return;
        }
        let keep = self.keep;
        self.entries.retain(|_, noted| now < noted.last + keep);
        self.sweep_at = Some(now + keep / 2);
    }

    fn make_room(&mut self, new: &FailureKey) {
        let is_own = |key: &FailureKey| key.caller == new.caller;
        let own = self.entries.keys().filter(|key| is_own(key)).count();
        let has_too_many = own >= OF_CALLER;
        if !has_too_many && self.entries.len() < ENTRIES {
            return;
        }
        let candidates = self.entries.iter();
        let oldest = candidates
            .filter(|(key, _)| !has_too_many || is_own(key))
            .min_by_key(|(_, noted)| noted.last);
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::{ENTRIES, FailureKey, FailureTable, OF_CALLER};

    const KEEP: Duration = Duration::from_secs(60);

    fn key(caller: u64, operation: u64) -> FailureKey {
        FailureKey {
            caller: Some(caller),
            operation,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_many_entries_loses_its_own_oldest_and_nobody_elses() {
        let mut table = FailureTable::<u32>::keeping(KEEP);
        *table.note(key(1, 1)) = 7;
        for operation in 0..2 * OF_CALLER as u64 {
            advance(Duration::from_millis(1)).await;
            table.note(key(2, operation));
        }
        assert_eq!(table.entries.len(), OF_CALLER + 1);
        assert_eq!(table.get(&key(1, 1)), Some(&mut 7));
        assert_eq!(table.get(&key(2, 0)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn many_callers_fill_it_up_to_its_bound_and_old_entries_go() {
        let mut table = FailureTable::<u32>::keeping(KEEP);
        for caller in 0..2 * ENTRIES as u64 {
            table.note(key(caller, 1));
        }
        assert_eq!(table.entries.len(), ENTRIES);
        assert!(!table.is_empty());
        advance(2 * KEEP).await;
        assert!(table.is_empty());
    }
}
