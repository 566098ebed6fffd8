use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::Principal;

/// A count of taken places. A place refers to its count, so that returning it needs no lock or
/// lookup.
#[derive(Debug, Default)]
pub(crate) struct PlaceCount(Arc<AtomicUsize>);

pub(crate) struct TakenPlace {
    taken: Arc<AtomicUsize>,
    count: usize,
}

impl PlaceCount {
    /// Takes places within the limit. `mut` excludes concurrent takers, but places may be returned
    /// meanwhile.
    pub(crate) fn take(&mut self, count: usize, limit: usize) -> Option<TakenPlace> {
        if self.0.load(Ordering::Acquire) + count > limit {
            return None;
        }
        self.0.fetch_add(count, Ordering::Relaxed);
        Some(TakenPlace {
            taken: Arc::clone(&self.0),
            count,
        })
    }

    /// An unused count may be dropped.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        // Pairs with the acquire of the next taker.
        self.taken.fetch_sub(self.count, Ordering::Release);
    }
}

#[derive(Debug, Default)]
pub(crate) struct PrincipalPlaces(Mutex<HashMap<Principal, PlaceCount, RandomState>>);

impl PrincipalPlaces {
    pub(crate) fn take(&self, principal: &Principal, limit: usize) -> Option<TakenPlace> {
        let mut counts = self.0.lock();
        if let Some(count) = counts.get_mut(principal) {
            return count.take(1, limit);
        }
        if counts.len() == counts.capacity() {
            counts.retain(|_, count| count.any());
            let more = counts.len() + 1;
            counts.reserve(more);
        }
        let count = counts.entry(principal.clone()).or_default();
        count.take(1, limit)
    }
}

/// One place needs no allocation.
#[derive(Default)]
pub(crate) struct QuotaPlaces {
    first: Option<TakenPlace>,
    others: Vec<TakenPlace>,
}

impl QuotaPlaces {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn add(&mut self, place: TakenPlace) {
        match self.first {
            None => self.first = Some(place),
            Some(_) => self.others.push(place),
        }
    }
}

pub(crate) type SharedPlaces = Arc<Mutex<QuotaPlaces>>;

#[cfg(test)]
mod tests {
    use shoal_ports::Principal;

    use super::PrincipalPlaces;

    #[test]
    fn principals_are_remembered_while_they_have_places() {
        let places = PrincipalPlaces::default();
        let take = |number: usize| places.take(&Principal::new(number.to_string()), 1);
        let held: Vec<_> = (0..100).map(|number| take(number).unwrap()).collect();
        for number in 100..10_000 {
            assert!(take(number).is_some());
        }
        assert!((0..100).all(|number| take(number).is_none()));
        let kept = places.0.lock().len();
        assert!(kept < 500, "{kept}");
        drop(held);
        assert!((0..100).all(|number| take(number).is_some()));
    }
}
