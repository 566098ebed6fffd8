use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::findings::Findings;
use crate::times::{histogram, record};

/// Shorter delays come from the system's timers.
pub(super) const LATE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) due: Instant,
    pub(super) sent: Instant,
    pub(super) answered: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct Timing {
    pub(super) from_due: Histogram<u64>,
    pub(super) from_sent: Histogram<u64>,
}

impl Timing {
    fn new() -> Self {
        Self {
            from_due: histogram(),
            from_sent: histogram(),
        }
    }

    fn record(&mut self, times: Times) {
        let since = |start| times.answered.saturating_duration_since(start);
        record(&mut self.from_due, since(times.due));
        record(&mut self.from_sent, since(times.sent));
    }
}

#[derive(Debug)]
pub(super) struct Counts {
    pub(super) kinds: Vec<Timing>,
    /// The first stage is the warm-up.
    pub(super) stages: Vec<Timing>,
    /// Times from due until sent, after the warm-up.
    pub(super) lag: Histogram<u64>,
    /// Times from due until answered, since the last sample.
    window: Histogram<u64>,
    /// Times to open a session, with `initialize`.
    pub(super) opened: Histogram<u64>,
    pub(super) calls: u64,
    pub(super) in_flight: u64,
    /// Calls that were sent late although most sessions were free.
    pub(super) late: u64,
    pub(super) refused: u64,
    pub(super) churned: u64,
    pub(super) events: BTreeMap<&'static str, u64>,
}

pub(super) struct Tally {
    counts: Mutex<Counts>,
    pub(super) findings: Findings,
}

impl Tally {
    pub(super) fn new(kinds: usize, stages: usize) -> Self {
        let counts = Counts {
            kinds: vec![Timing::new(); kinds],
            stages: vec![Timing::new(); stages],
            lag: histogram(),
            window: histogram(),
            opened: histogram(),
            calls: 0,
            in_flight: 0,
            late: 0,
            refused: 0,
            churned: 0,
            events: BTreeMap::new(),
        };
        Self {
            counts: Mutex::new(counts),
            findings: Findings::default(),
        }
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sent(&self, waited: Duration, sessions: usize) {
        let mut counts = self.counts();
        // With free sessions, a call is late only because the generator lacks CPU time.
        let others = sessions.saturating_sub(1) as u64;
        if waited > LATE && counts.in_flight * 2 < others {
            counts.late += 1;
        }
        counts.in_flight += 1;
    }

    /// Latency counts unless the call `failed`.
    pub(super) fn ended(&self, kind: usize, stage: usize, times: Times, failed: bool) {
        let mut counts = self.counts();
        counts.in_flight = counts.in_flight.saturating_sub(1);
        if failed {
            return;
        }
        counts.calls += 1;
        let latency = times.answered.saturating_duration_since(times.due);
        record(&mut counts.window, latency);
        counts.stages[stage].record(times);
        if stage > 0 {
            counts.kinds[kind].record(times);
            let lag = times.sent.saturating_duration_since(times.due);
            record(&mut counts.lag, lag);
        }
    }

    pub(super) fn unsent(&self, stage: usize, waited: Duration) {
        let mut counts = self.counts();
        record(&mut counts.stages[stage].from_due, waited);
        if stage > 0 {
            record(&mut counts.lag, waited);
        }
    }

    pub(super) fn failed(&self, what: &str, failure: &Failure) {
        let kind = match failure {
            _ if failure.is_passing() => {
                self.counts().refused += 1;
                return;
            }
            Failure::Wrong(_) => "wrong answer",
            Failure::Transport(_) | Failure::Status { .. } => "no answer",
        };
        self.findings.add(&format!("{kind}: {what}"), failure);
    }

    pub(super) fn event(&self, what: &'static str) {
        *self.counts().events.entry(what).or_default() += 1;
    }
}

impl Counts {
    pub(super) fn take_window(&mut self) -> Histogram<u64> {
        let taken = self.window.clone();
        self.window.reset();
        taken
    }
}
