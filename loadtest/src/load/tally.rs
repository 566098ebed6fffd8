use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::outcome::Violation;

const LONGEST_NS: u64 = 600_000_000_000;

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
        record(
            &mut self.from_due,
            times.answered.saturating_duration_since(times.due),
        );
        record(
            &mut self.from_sent,
            times.answered.saturating_duration_since(times.sent),
        );
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
    /// Number and first example of each kind of fault.
    faults: BTreeMap<String, (u64, String)>,
    pub(super) events: BTreeMap<&'static str, u64>,
}

pub(super) struct Tally(Mutex<Counts>);

impl Tally {
    pub(super) fn new(kinds: usize, stages: usize) -> Self {
        Self(Mutex::new(Counts {
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
            faults: BTreeMap::new(),
            events: BTreeMap::new(),
        }))
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        record(
            &mut counts.window,
            times.answered.saturating_duration_since(times.due),
        );
        counts.stages[stage].record(times);
        if stage > 0 {
            counts.kinds[kind].record(times);
            record(
                &mut counts.lag,
                times.sent.saturating_duration_since(times.due),
            );
        }
    }

    pub(super) fn unsent(&self, stage: usize, waited: Duration) {
        let mut counts = self.counts();
        record(&mut counts.stages[stage].from_due, waited);
        if stage > 0 {
            record(&mut counts.lag, waited);
        }
    }

    /// Whether the failure was only a temporary refusal.
    pub(super) fn failed(&self, what: &str, failure: &Failure) -> bool {
        let kind = match failure {
            Failure::Status {
                status: 429 | 503, ..
            } => {
                self.counts().refused += 1;
                return true;
            }
            Failure::Wrong(_) => "wrong answer",
            Failure::Transport(_) | Failure::Status { .. } => "no answer",
        };
        self.fault(format!("{kind}: {what}"), failure.to_string());
        false
    }

    pub(super) fn fault(&self, what: String, example: String) {
        let mut counts = self.counts();
        counts.faults.entry(what).or_insert((0, example)).0 += 1;
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

    pub(super) fn fault_count(&self) -> u64 {
        self.faults.values().map(|(count, _)| count).sum()
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        let faults = self.faults.iter();
        faults
            .map(|(what, (count, example))| Violation {
                what: what.clone(),
                count: *count,
                example: example.clone(),
            })
            .collect()
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid")
}

pub(super) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}
