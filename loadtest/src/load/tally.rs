//! What the sessions of a run did, found and measured, so far.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::outcome::Violation;

/// The longest latency told apart, in nanoseconds.
const LONGEST_NS: u64 = 600_000_000_000;

/// A call that is sent so long after it was due is late; less is the system's timers.
pub(super) const LATE: Duration = Duration::from_millis(10);

/// When a call was due, sent and answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) due: Instant,
    pub(super) sent: Instant,
    pub(super) answered: Instant,
}

/// Latencies of one part of the calls, in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Timing {
    /// From when the call was due.
    pub(super) from_due: Histogram<u64>,
    /// From when it was sent.
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

/// All that is counted.
#[derive(Debug)]
pub(super) struct Counts {
    /// Of each kind in the mix.
    pub(super) kinds: Vec<Timing>,
    /// Of each stage; the first is the warm-up.
    pub(super) stages: Vec<Timing>,
    /// From when a call was due to when it was sent, after the warm-up.
    pub(super) lag: Histogram<u64>,
    /// From when a call was due, since the window was last taken.
    window: Histogram<u64>,
    /// Opening a session while the run goes on: connecting, `initialize`, and telling that it is done.
    pub(super) opened: Histogram<u64>,
    /// Calls answered rightly, in the warm-up too.
    pub(super) calls: u64,
    /// Calls sent and not answered yet.
    pub(super) in_flight: u64,
    /// Calls that were sent late though most sessions were free.
    pub(super) late: u64,
    /// Calls that the server turned away for the moment (HTTP 429 or 503).
    pub(super) refused: u64,
    /// Sessions opened, called in and ended by churn.
    pub(super) churned: u64,
    /// What must not happen, by what it was: how often, and the first in words.
    faults: BTreeMap<String, (u64, String)>,
    /// Other things that happened, by what they were.
    pub(super) events: BTreeMap<&'static str, u64>,
}

/// The counts, shared by all sessions.
pub(super) struct Tally(Mutex<Counts>);

impl Tally {
    /// Nothing counted, of so many kinds and stages.
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

    /// The counts, locked: not to be held for long.
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call was sent by one of `sessions`, so long after it was due.
    pub(super) fn sent(&self, waited: Duration, sessions: usize) {
        let mut counts = self.counts();
        // A session that was free would have sent it in time, had the generator had the CPU time for it.
        let others = sessions.saturating_sub(1) as u64;
        if waited > LATE && counts.in_flight * 2 < others {
            counts.late += 1;
        }
        counts.in_flight += 1;
    }

    /// A call of the kind at `kind` in the mix ended, that was due in `stage`; it counts unless it `failed`.
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

    /// A call that was due in `stage` was never sent: it waited for `waited` at least.
    pub(super) fn unsent(&self, stage: usize, waited: Duration) {
        let mut counts = self.counts();
        record(&mut counts.stages[stage].from_due, waited);
        if stage > 0 {
            record(&mut counts.lag, waited);
        }
    }

    /// Something called `what` failed; true where the server turned it away for the moment.
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

    /// `what` must not happen and did.
    pub(super) fn fault(&self, what: String, example: String) {
        let mut counts = self.counts();
        counts.faults.entry(what).or_insert((0, example)).0 += 1;
    }

    /// `what` happened.
    pub(super) fn event(&self, what: &'static str) {
        *self.counts().events.entry(what).or_default() += 1;
    }
}

impl Counts {
    /// The latencies since the last time.
    pub(super) fn take_window(&mut self) -> Histogram<u64> {
        let taken = self.window.clone();
        self.window.reset();
        taken
    }

    /// How many must-nots there have been.
    pub(super) fn fault_count(&self) -> u64 {
        self.faults.values().map(|(count, _)| count).sum()
    }

    /// The must-nots.
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

/// Records `time`.
pub(super) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}
