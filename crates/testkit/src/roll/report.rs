use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Failure, Options, Restart, Sample, Tally};

/// Failures to print, and slowest calls to keep. The JSON has all failures.
const PRINTED: usize = 20;
const LONGEST_US: u64 = 600_000_000;

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether no client noticed the restarts.
    pub clean: bool,
    /// Number of clients of 2025-11-25, each with a session.
    pub legacy: usize,
    /// Number of clients of 2026-07-28.
    pub modern: usize,
    /// How long the clients worked.
    pub took: Duration,
    /// Every process that was replaced.
    pub restarts: Vec<Restart>,
    /// The latency of short calls.
    pub short_calls: Latency,
    /// The latency of long calls.
    pub long_calls: Latency,
    /// The slowest short calls, to look up in logs.
    pub slowest_short_calls: Vec<Sample>,
    /// The observations of the clients.
    pub tally: Tally,
    /// The directory of the logs, if anything failed.
    pub kept: Option<PathBuf>,
}

/// The latency of calls without the time of their tools, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Number of calls.
    pub calls: u64,
    /// The median.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The maximum.
    pub max_ms: f64,
}

impl Report {
    pub(super) fn new(
        options: &Options,
        took: Duration,
        restarts: Vec<Restart>,
        tally: Tally,
    ) -> Self {
        let samples = tally.samples.iter().copied();
        let (mut short, long): (Vec<_>, Vec<_>) = samples.partition(|one| one.takes.is_zero());
        short.sort_by_key(|sample| std::cmp::Reverse(sample.took));
        let failed = restarts.iter().any(|restart| restart.failed.is_some());
        Self {
            clean: tally.is_clean() && !failed && tally.answered > 0,
            legacy: options.sessions,
            modern: options.modern(),
            took,
            restarts,
            short_calls: Latency::of(&short),
            long_calls: Latency::of(&long),
            slowest_short_calls: short.into_iter().take(PRINTED).collect(),
            tally,
            kept: None,
        }
    }

    /// Whether clients saw no failure and every process exited cleanly.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.clean
    }
}

impl Latency {
    fn of(samples: &[Sample]) -> Self {
        let mut histogram =
            Histogram::<u64>::new_with_max(LONGEST_US, 3).expect("the bounds make sense");
        for sample in samples {
            let late = sample.took.saturating_sub(sample.takes);
            histogram.saturating_record(late.as_micros() as u64);
        }
        let at = |share| histogram.value_at_quantile(share) as f64 / 1000.0;
        Self {
            calls: histogram.len(),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (legacy, modern, tally) = (self.legacy, self.modern, &self.tally);
        let (failed, again) = (tally.failures.len(), tally.reinitialised.len());
        let seconds = self.took.as_secs();
        writeln!(
            out,
            "{legacy} sessions and {modern} modern clients for {seconds} s"
        )?;
        for restart in &self.restarts {
            let drain = restart.until.saturating_sub(restart.told);
            let handed_over = restart.handed_over.as_deref();
            writeln!(
                out,
                "  {} at {:.1} s: drained in {:.1} s; handed over: {}",
                restart.name,
                restart.told.as_secs_f64(),
                drain.as_secs_f64(),
                handed_over.unwrap_or("nothing")
            )?;
        }
        writeln!(
            out,
            "requests {}, failed {failed}, re-initialised {again}, resumes {}; answered {}; events lost {}, doubled {}; executed twice {}; modern streams told to return {}",
            tally.requests,
            tally.resumes.len(),
            tally.answered,
            tally.lost,
            tally.doubled,
            tally.executed_twice,
            tally.told_to_return
        )?;
        for (name, latency) in [("short", &self.short_calls), ("long", &self.long_calls)] {
            writeln!(
                out,
                "{name} calls: {}, beyond their own time p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
                latency.calls, latency.p50_ms, latency.p99_ms, latency.max_ms
            )?;
        }
        for Failure { at, client, what } in tally.failures.iter().take(PRINTED) {
            let at = at.as_secs_f64();
            writeln!(out, "  failed at {at:.2} s, client {client}: {what}")?;
        }
        let stopped = self.restarts.iter().filter_map(|one| one.failed.as_ref());
        for what in tally.violations.iter().take(PRINTED).chain(stopped) {
            writeln!(out, "  {what}")?;
        }
        if let Some(kept) = &self.kept {
            writeln!(out, "  logs: {}", kept.display())?;
        }
        let violations = tally.violations.len();
        match self.clean {
            true => write!(out, "verdict: nobody noticed"),
            false => write!(
                out,
                "verdict: NOTICED: {failed} failed, {again} re-initialised, {violations} violations"
            ),
        }
    }
}
