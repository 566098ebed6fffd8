//! Admission: how many calls a pool holds, and the guard that each of them holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shoal_ports::WorkerLoad;

/// The places of one pool: those where calls run, and those where they wait.
///
/// Admission is decided here, in front of the queue (`pool/queue.rs`), which has no bound of its own.
pub(super) struct Places {
    concurrency: usize,
    total: usize,
    taken: AtomicUsize,
    running: AtomicUsize,
}

/// A call's place, from its admission until it is dropped.
pub(super) struct Place(Arc<Places>);

/// Counts a call as running.
pub(super) struct Running<'a>(&'a Places);

impl Places {
    pub(super) fn new(concurrency: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self {
            concurrency,
            total: concurrency.saturating_add(queue),
            taken: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
        })
    }

    /// Takes a place if there is one.
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        // Adding first and giving back keeps this one instruction while there is room; a burst at the
        // very edge may refuse a call that would just have fitted.
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.total {
            Some(Place(Arc::clone(self)))
        } else {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            None
        }
    }

    pub(super) fn load(&self) -> WorkerLoad {
        let running = self.running.load(Ordering::Relaxed);
        let taken = self.taken.load(Ordering::Relaxed).min(self.total);
        WorkerLoad {
            running,
            queued: taken.saturating_sub(running),
            capacity: self.concurrency,
        }
    }
}

impl Place {
    /// The call has left the queue.
    pub(super) fn run(&self) -> Running<'_> {
        self.0.running.fetch_add(1, Ordering::Relaxed);
        Running(&self.0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
