use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::failure::Failure;

const EXAMPLES: usize = 5;

const LONGEST_NS: u64 = 120_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    WarmUp = 0,
    Measure = 1,
    Stop = 2,
}

pub(super) struct Tally {
    phase: AtomicU8,
    calls: AtomicU64,
    wrong: AtomicU64,
    failed: AtomicU64,
    /// In nanoseconds, of calls that began while measuring.
    latencies: Mutex<Histogram<u64>>,
    examples: Mutex<Vec<String>>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            phase: AtomicU8::new(Phase::WarmUp as u8),
            calls: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            latencies: Mutex::new(
                Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid"),
            ),
            examples: Mutex::new(Vec::new()),
        }
    }
}

impl Tally {
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(super) fn is_in(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Relaxed) == phase as u8
    }

    /// `latency` is `None` if the call began before the measurement.
    pub(super) fn answered(&self, latency: Option<Duration>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(latency) = latency {
            let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
            locked(&self.latencies).saturating_record(nanoseconds);
        }
    }

    pub(super) fn refused(&self, failure: &Failure) {
        let count = if failure.is_wrong_answer() {
            &self.wrong
        } else {
            &self.failed
        };
        count.fetch_add(1, Ordering::Relaxed);
        let mut examples = locked(&self.examples);
        if examples.len() < EXAMPLES {
            examples.push(failure.to_string());
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn wrong(&self) -> u64 {
        self.wrong.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn latencies(&self) -> Histogram<u64> {
        locked(&self.latencies).clone()
    }

    pub(super) fn examples(&self) -> Vec<String> {
        locked(&self.examples).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
