//! How many calls are under way, and the bounds on that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many places are taken. Giving one back needs no lock and no look-up: whoever holds it holds the count too.
#[derive(Debug, Default)]
pub(crate) struct PlaceCount(Arc<AtomicUsize>);

/// Some places, until this is dropped.
pub(crate) struct Place {
    taken: Arc<AtomicUsize>,
    count: usize,
}

impl PlaceCount {
    /// Others may give places back meanwhile, but nobody else takes any: that is what `mut` is for.
    pub(crate) fn take(&mut self, count: usize, limit: usize) -> Option<Place> {
        if self.0.load(Ordering::Acquire) + count > limit {
            return None;
        }
        self.0.fetch_add(count, Ordering::Relaxed);
        Some(Place {
            taken: Arc::clone(&self.0),
            count,
        })
    }

    /// Whether any are taken. If not, the count may be dropped, and begun anew.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Who takes it next comes after this.
        self.taken.fetch_sub(self.count, Ordering::Release);
    }
}

/// What a request holds of all quotas; one takes no memory of its own.
#[derive(Default)]
pub(crate) struct Places {
    first: Option<Place>,
    others: Vec<Place>,
}

impl Places {
    pub(crate) fn add(&mut self, place: Place) {
        match self.first {
            None => self.first = Some(place),
            Some(_) => self.others.push(place),
        }
    }
}
