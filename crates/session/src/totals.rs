//! Totals of an amount, for the node and by principal. Only a [`Portion`] changes them, by its own amount, so that no
//! total falls below what is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use shoal_ports::Principal;

#[derive(Debug, Default)]
pub(crate) struct Totals {
    all: AtomicU64,
    of: DashMap<Principal, u64>,
}

/// A share of the totals, which is given back on drop.
#[derive(Debug)]
pub(crate) struct Portion {
    totals: Arc<Totals>,
    principal: Principal,
    amount: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    All,
    Own,
}

impl Totals {
    pub(crate) fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    pub(crate) fn of(&self, principal: &Principal) -> u64 {
        self.of.get(principal).map_or(0, |amount| *amount)
    }

    pub(crate) fn portion(self: &Arc<Self>, principal: &Principal, amount: u64) -> Portion {
        let mut portion = self.nothing(principal);
        portion.resize(amount);
        portion
    }

    /// Takes one unit. The error names the limit that was reached.
    pub(crate) fn take_one(
        self: &Arc<Self>,
        principal: &Principal,
        most: u64,
        most_own: u64,
    ) -> Result<Portion, Exceeded> {
        let mut portion = self.nothing(principal);
        let below = |all: u64| (all < most).then_some(all + 1);
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.all.fetch_update(set, get, below).is_err() {
            return Err(Exceeded::All);
        }
        let mut own = self.of.entry(principal.clone()).or_default();
        *own += 1;
        portion.amount = 1;
        let exceeded = *own > most_own;
        // Unlocked first, because dropping the portion locks the entry.
        drop(own);
        match exceeded {
            true => Err(Exceeded::Own),
            false => Ok(portion),
        }
    }

    fn nothing(self: &Arc<Self>, principal: &Principal) -> Portion {
        Portion {
            totals: self.clone(),
            principal: principal.clone(),
            amount: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.all() == 0 && self.of.is_empty()
    }
}

impl Portion {
    pub(crate) fn resize(&mut self, amount: u64) {
        let Totals { all, of } = &*self.totals;
        if let Some(more) = amount.checked_sub(self.amount).filter(|more| *more > 0) {
            all.fetch_add(more, Ordering::Relaxed);
            *of.entry(self.principal.clone()).or_default() += more;
        } else if let Some(less) = self.amount.checked_sub(amount).filter(|less| *less > 0) {
            all.fetch_sub(less, Ordering::Relaxed);
            of.remove_if_mut(&self.principal, |_, held| {
                *held -= less;
                *held == 0
            });
        }
        self.amount = amount;
    }
}

impl Drop for Portion {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shoal_ports::Principal;

    use super::{Exceeded, Totals};

    #[test]
    fn a_portion_gives_back_what_it_took_and_no_more() {
        let totals = Arc::new(Totals::default());
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let mut first = totals.portion(&alice, 40);
        let second = totals.portion(&alice, 2);
        first.resize(10);
        assert_eq!((totals.all(), totals.of(&alice)), (12, 12));
        drop(first);
        assert_eq!((totals.all(), totals.of(&alice)), (2, 2));
        assert_eq!(totals.of(&bob), 0);
        drop(second);
        assert!(totals.is_empty());
    }

    #[test]
    fn what_is_refused_is_not_counted() {
        let totals = Arc::new(Totals::default());
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let first = totals.take_one(&alice, 2, 1).unwrap();
        let own = totals.take_one(&alice, 2, 1);
        assert_eq!(own.err(), Some(Exceeded::Own));
        let second = totals.take_one(&bob, 2, 1).unwrap();
        let all = totals.take_one(&Principal::new("carol"), 2, 1);
        assert_eq!(all.err(), Some(Exceeded::All));
        assert_eq!(totals.all(), 2);
        drop((first, second));
        assert!(totals.is_empty());
    }

    #[test]
    fn many_threads_leave_nothing_behind() {
        let totals = Arc::new(Totals::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..5_000 {
                        let mut portion = totals.portion(&Principal::new("alice"), turn % 3);
                        let _ = totals.take_one(&Principal::new("alice"), 9, 9);
                        portion.resize(turn % 7);
                        assert!(totals.all() < 100, "a total has wrapped");
                    }
                });
            }
        });
        assert!(totals.is_empty());
    }
}
