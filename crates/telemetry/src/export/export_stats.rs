use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::metrics::{DropReason, ExportOutcome, Signal, metrics};

const SAID_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct ExportStats {
    signal: Signal,
    limit: usize,
    waiting: AtomicUsize,
    is_closed: AtomicBool,
    said: Mutex<FailureLog>,
    said_rejected: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct FailureLog {
    at: Option<Instant>,
    failures: u64,
    lost: u64,
    is_failing: bool,
}

impl ExportStats {
    pub(crate) fn new(signal: Signal, limit: usize) -> Self {
        Self {
            signal,
            limit,
            waiting: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            said: Mutex::default(),
            said_rejected: Mutex::default(),
        }
    }

    /// If the queue is full, counts a loss.
    pub(super) fn admit(&self) -> bool {
        if self.is_closed.load(Ordering::Relaxed) {
            return false;
        }
        let admitted = self
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                (waiting < self.limit).then_some(waiting + 1)
            })
            .is_ok();
        if !admitted {
            metrics()
                .telemetry
                .dropped(self.signal, DropReason::QueueFull, 1);
            // Callers neither wait for the lock nor log. The next export logs the losses.
            if let Some(mut said) = self.said.try_lock() {
                said.lost += 1;
            }
        }
        admitted
    }

    pub(super) fn exported(&self, count: usize, outcome: ExportOutcome, why: &str) {
        let _ = self
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                Some(waiting.saturating_sub(count))
            });
        let own = &metrics().telemetry;
        own.exported(self.signal, outcome);
        let failed = outcome != ExportOutcome::Accepted;
        if failed && count > 0 {
            own.dropped(self.signal, DropReason::ExportFailed, count as u64);
        }
        let mut said = self.said.lock();
        if failed {
            said.failures += 1;
            said.lost += count as u64;
        }
        let recovered = !failed && said.is_failing;
        let is_due = said.at.is_none_or(|at| at.elapsed() >= SAID_EVERY);
        said.is_failing = failed;
        if !(recovered || is_due && (failed || said.lost > 0)) {
            return;
        }
        let (failures, lost) = (said.failures, said.lost);
        *said = FailureLog {
            at: Some(Instant::now()),
            is_failing: failed,
            ..FailureLog::default()
        };
        drop(said);
        let signal = self.signal.as_str();
        if recovered {
            tracing::info!(
                signal,
                failures,
                lost,
                "the collector accepts telemetry again"
            );
        } else if failed {
            tracing::warn!(
                signal,
                failures,
                lost,
                error = why,
                "telemetry does not reach the collector; logged at most once a minute"
            );
        } else {
            tracing::warn!(
                signal,
                lost,
                "telemetry was dropped because too much waited for the collector"
            );
        }
    }

    pub(super) fn rejected(&self, count: u64, why: &str) {
        let own = &metrics().telemetry;
        own.dropped(self.signal, DropReason::Rejected, count);
        let mut at = self.said_rejected.lock();
        if at.is_some_and(|at| at.elapsed() < SAID_EVERY) {
            return;
        }
        *at = Some(Instant::now());
        drop(at);
        tracing::warn!(
            signal = self.signal.as_str(),
            count,
            reason = why,
            "the collector rejects telemetry; logged at most once a minute"
        );
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}
