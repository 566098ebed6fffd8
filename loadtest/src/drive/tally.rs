//! The phase and the counts that the sessions of a run share.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::times;

const EXAMPLES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    WarmUp = 0,
    Measure = 1,
    Stop = 2,
}

pub(super) struct Tally {
    phase: AtomicU8,
    counts: Mutex<Counts>,
}

pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) wrong: u64,
    pub(super) failed: u64,
    /// Only of calls that began while measuring.
    pub(super) latencies: Histogram<u64>,
    pub(super) examples: Vec<String>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            phase: AtomicU8::new(Phase::WarmUp as u8),
            counts: Mutex::new(Counts {
                calls: 0,
                wrong: 0,
                failed: 0,
                latencies: times::histogram(),
                examples: Vec::new(),
            }),
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

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `latency` is `None` if the call began before the measurement.
    pub(super) fn answered(&self, latency: Option<Duration>) {
        let mut counts = self.counts();
        counts.calls += 1;
        if let Some(latency) = latency {
            times::record(&mut counts.latencies, latency);
        }
    }

    pub(super) fn refused(&self, failure: &Failure) {
        let mut counts = self.counts();
        match failure {
            Failure::Wrong(_) => counts.wrong += 1,
            _ => counts.failed += 1,
        }
        if counts.examples.len() < EXAMPLES {
            counts.examples.push(failure.to_string());
        }
    }
}
