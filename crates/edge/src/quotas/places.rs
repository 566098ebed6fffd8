//! How many calls of a quota are under way.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::QuotaSubject;

/// By whose they are. Those without any are not kept.
#[derive(Default)]
pub(super) struct PlaceCounts(Mutex<HashMap<QuotaSubject, usize, RandomState>>);

/// Some places of one subject, until this is dropped.
pub(super) struct Place {
    counts: Arc<PlaceCounts>,
    subject: QuotaSubject,
    count: usize,
}

impl PlaceCounts {
    pub(super) fn take(
        counts: &Arc<Self>,
        subject: QuotaSubject,
        count: usize,
        limit: usize,
    ) -> Option<Place> {
        let mut all = counts.0.lock();
        match all.get_mut(&subject) {
            Some(taken) if *taken + count <= limit => *taken += count,
            None if count <= limit => drop(all.insert(subject.clone(), count)),
            _ => return None,
        }
        drop(all);
        Some(Place {
            counts: Arc::clone(counts),
            subject,
            count,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.counts.0.lock();
        if let Some(taken) = all.get_mut(&self.subject) {
            *taken -= self.count;
            if *taken == 0 {
                all.remove(&self.subject);
            }
        }
    }
}

/// What a request holds of all quotas; one takes no memory of its own.
#[derive(Default)]
pub(crate) struct Places {
    first: Option<Place>,
    others: Vec<Place>,
}

impl Places {
    pub(super) fn add(&mut self, place: Place) {
        match self.first {
            None => self.first = Some(place),
            Some(_) => self.others.push(place),
        }
    }
}
