use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::findings::Findings;
use crate::times::{histogram, record};

/// Shorter delays come from the system's timers.
pub(crate) const LATE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// In a closed loop, the same as `sent`.
    pub(crate) due: Instant,
    pub(crate) sent: Instant,
    pub(crate) answered: Instant,
}

#[derive(Debug, Clone)]
pub(crate) struct Timing {
    pub(crate) from_due: Histogram<u64>,
    pub(crate) from_sent: Histogram<u64>,
}

impl Timing {
    fn new() -> Self {
        Self {
            from_due: histogram(),
            from_sent: histogram(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Counts {
    /// Times from due until answered, after the warm-up.
    pub(crate) kinds: Vec<Histogram<u64>>,
    pub(crate) stages: Vec<Timing>,
    /// Times from due until answered, since the last second.
    pub(crate) window: Histogram<u64>,
    /// Includes the warm-up, as the other counts do.
    pub(crate) calls: u64,
    pub(crate) in_flight: u64,
    /// Calls that were sent late although most sessions were free, after the warm-up.
    pub(crate) late: u64,
    /// Refused only for the moment.
    pub(crate) refused: u64,
    pub(crate) events: BTreeMap<&'static str, u64>,
}

pub(crate) struct Tally {
    counts: Mutex<Counts>,
    pub(crate) findings: Findings,
}

impl Tally {
    pub(crate) fn new(kinds: usize, stages: usize) -> Self {
        let counts = Counts {
            kinds: vec![histogram(); kinds],
            stages: vec![Timing::new(); stages],
            window: histogram(),
            calls: 0,
            in_flight: 0,
            late: 0,
            refused: 0,
            events: BTreeMap::new(),
        };
        Self {
            counts: Mutex::new(counts),
            findings: Findings::default(),
        }
    }

    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With free sessions, a call is late only because the generator lacks CPU time.
    pub(super) fn sent(&self, lag: Duration, stage: usize, sessions: usize) {
        let mut counts = self.counts();
        let others = sessions.saturating_sub(1) as u64;
        let is_late = stage > 0 && lag > LATE && counts.in_flight * 2 < others;
        counts.late += u64::from(is_late);
        counts.in_flight += 1;
    }

    pub(super) fn ended(&self, kind: usize, stage: usize, times: Times) {
        let mut counts = self.counts();
        counts.calls += 1;
        let since = |start| times.answered.saturating_duration_since(start);
        record(&mut counts.window, since(times.due));
        record(&mut counts.stages[stage].from_due, since(times.due));
        record(&mut counts.stages[stage].from_sent, since(times.sent));
        if stage > 0 {
            record(&mut counts.kinds[kind], since(times.due));
        }
    }

    pub(super) fn back(&self) {
        self.counts().in_flight -= 1;
    }

    pub(super) fn unsent(&self, stage: usize, waited: Duration) {
        record(&mut self.counts().stages[stage].from_due, waited);
    }

    pub(crate) fn failed(&self, what: &str, failure: &Failure) {
        match failure.is_passing() {
            true => self.counts().refused += 1,
            false => self.findings.failed(what, failure),
        }
    }

    pub(crate) fn event(&self, what: &'static str) {
        *self.counts().events.entry(what).or_default() += 1;
    }
}
