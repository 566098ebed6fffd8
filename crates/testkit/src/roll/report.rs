use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::latency::Latency;
use super::load::Clients;
use super::rollout::Restart;
use super::tally::{Sample, Tally};

/// Failures to print, and slowest calls to keep. The JSON has all failures.
const PRINTED: usize = 20;

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
    /// Figures for each role's restarts, for the remaining time, and in total.
    pub rows: Vec<Row>,
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

/// The figures of a part of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The name of the part.
    pub what: String,
    /// Processes replaced.
    pub restarts: usize,
    /// The longest drain.
    pub drain: Duration,
    /// Sessions handed over.
    pub handed_over: u64,
    /// The median hand-over in milliseconds, at the slowest node.
    pub median_ms: f64,
    /// The longest hand-over in milliseconds.
    pub longest_ms: f64,
    /// Requests sent.
    pub requests: usize,
    /// Failed requests.
    pub failed: usize,
    /// Sessions that clients had to open again.
    pub reinitialised: usize,
    /// Streams resumed.
    pub resumes: usize,
    /// The latency of calls.
    pub latency: Latency,
}

impl Report {
    pub(super) fn new(
        clients: &Clients,
        took: Duration,
        restarts: Vec<Restart>,
        tally: Tally,
    ) -> Self {
        let is_short = |sample: &&Sample| sample.takes.is_zero();
        let is_long = |sample: &&Sample| !sample.takes.is_zero();
        let failed = restarts.iter().any(|restart| restart.failed.is_some());
        Self {
            clean: tally.is_clean() && !failed && tally.answered > 0,
            legacy: clients.legacy,
            modern: clients.modern,
            took,
            rows: rows(&restarts, &tally),
            restarts,
            short_calls: Latency::of(tally.samples.iter().filter(is_short)),
            long_calls: Latency::of(tally.samples.iter().filter(is_long)),
            slowest_short_calls: slowest(tally.samples.iter().filter(is_short)),
            tally,
            kept: None,
        }
    }

    /// Whether clients saw no failure and every process exited cleanly.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.clean
    }

    pub(super) fn keep(&mut self, directory: &Path) {
        self.kept = Some(directory.to_owned());
    }
}

fn slowest<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Sample> {
    let mut samples = Vec::from_iter(samples.copied());
    samples.sort_by_key(|sample| std::cmp::Reverse(sample.took));
    samples.truncate(PRINTED);
    samples
}

fn rows(restarts: &[Restart], tally: &Tally) -> Vec<Row> {
    let mut roles: Vec<&str> = Vec::new();
    for restart in restarts {
        if !roles.contains(&restart.role.as_str()) {
            roles.push(&restart.role);
        }
    }
    let mut rows = Vec::new();
    for role in roles {
        let of_role: Vec<&Restart> = restarts.iter().filter(|one| one.role == role).collect();
        let within = |at: Duration| of_role.iter().any(|one| one.from <= at && at <= one.until);
        let mut row = row(role, tally, within);
        row.restarts = of_role.len();
        for restart in of_role {
            row.drain = row.drain.max(restart.drain());
            let handed_over = restart.handed_over.unwrap_or_default();
            row.handed_over += handed_over.sessions;
            row.median_ms = row.median_ms.max(handed_over.median_ms);
            row.longest_ms = row.longest_ms.max(handed_over.longest_ms);
        }
        rows.push(row);
    }
    if !restarts.is_empty() {
        let outside = |at| !restarts.iter().any(|one| one.from <= at && at <= one.until);
        rows.push(row("outside", tally, outside));
    }
    rows.push(row("all", tally, |_| true));
    rows
}

fn row(what: &str, tally: &Tally, within: impl Fn(Duration) -> bool) -> Row {
    let count = |times: &[Duration]| times.iter().filter(|at| within(**at)).count();
    let failures = tally.failures.iter().filter(|failure| within(failure.at));
    // A call counts in the parts in which it began and ended.
    let touches = |sample: &&Sample| within(sample.at) || within(sample.at + sample.took);
    Row {
        what: what.to_owned(),
        requests: count(&tally.sent),
        failed: failures.count(),
        reinitialised: count(&tally.reinitialised),
        resumes: count(&tally.resumes),
        latency: Latency::of(tally.samples.iter().filter(touches)),
        ..Row::default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            legacy,
            modern,
            took,
            ..
        } = self;
        writeln!(
            out,
            "{legacy} sessions and {modern} modern clients for {} s",
            took.as_secs()
        )?;
        writeln!(
            out,
            "{:<9}{:>9}{:>9}{:>10}{:>9}{:>9}{:>10}{:>8}{:>8}{:>9}{:>9}{:>9}{:>9}",
            "",
            "restarts",
            "drain s",
            "handed",
            "med ms",
            "max ms",
            "requests",
            "failed",
            "re-init",
            "resumes",
            "p50 ms",
            "p99 ms",
            "max ms"
        )?;
        for row in &self.rows {
            writeln!(
                out,
                "{:<9}{:>9}{:>9.1}{:>10}{:>9.1}{:>9.1}{:>10}{:>8}{:>8}{:>9}{:>9.1}{:>9.0}{:>9.0}",
                row.what,
                row.restarts,
                row.drain.as_secs_f64(),
                row.handed_over,
                row.median_ms,
                row.longest_ms,
                row.requests,
                row.failed,
                row.reinitialised,
                row.resumes,
                row.latency.p50_ms,
                row.latency.p99_ms,
                row.latency.max_ms
            )?;
        }
        let tally = &self.tally;
        writeln!(
            out,
            "answered {}; events lost {}, doubled {}; executed twice {}; streams broken off {}, modern streams told to return {}",
            tally.answered,
            tally.lost,
            tally.doubled,
            tally.executed_twice,
            tally.broken_off,
            tally.told_to_return
        )?;
        for (name, latency) in [("short", &self.short_calls), ("long", &self.long_calls)] {
            writeln!(
                out,
                "{name} calls: {}, beyond their own time p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
                latency.calls, latency.p50_ms, latency.p99_ms, latency.max_ms
            )?;
        }
        for failure in tally.failures.iter().take(PRINTED) {
            let at = failure.at.as_secs_f64();
            writeln!(
                out,
                "  failed at {at:.2} s, client {}: {}",
                failure.client, failure.what
            )?;
        }
        for violation in tally.violations.iter().take(PRINTED) {
            writeln!(out, "  {violation}")?;
        }
        for failed in self.restarts.iter().filter_map(|one| one.failed.as_ref()) {
            writeln!(out, "  {failed}")?;
        }
        if let Some(kept) = &self.kept {
            writeln!(out, "  logs: {}", kept.display())?;
        }
        let verdict = if self.clean {
            "nobody noticed".to_owned()
        } else {
            format!(
                "NOTICED: {} failed, {} re-initialised, {} violations",
                tally.failures.len(),
                tally.reinitialised.len(),
                tally.violations.len()
            )
        };
        write!(out, "verdict: {verdict}")
    }
}
