use std::collections::VecDeque;

use parking_lot::Mutex;
use shoal_ports::Listing;

pub(super) struct Ring<T> {
    items: Mutex<VecDeque<T>>,
    most: usize,
}

impl<T: Clone> Ring<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            items: Mutex::default(),
            most,
        }
    }

    pub(super) fn push(&self, item: T) {
        let mut items = self.items.lock();
        if items.len() >= self.most {
            items.pop_front();
        }
        items.push_back(item);
    }

    pub(super) fn oldest_first(&self) -> Vec<T> {
        self.items.lock().iter().cloned().collect()
    }

    pub(super) fn newest_first(&self, limit: usize) -> Listing<T> {
        let items = self.items.lock();
        Listing {
            items: items.iter().rev().take(limit).cloned().collect(),
            total: items.len(),
        }
    }
}
