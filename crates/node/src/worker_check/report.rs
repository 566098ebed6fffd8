use serde::Serialize;

use super::check_failure::{CheckFailure, Checked};
use super::checks::Check;
use super::listener::Met;
use crate::print::plain;

#[derive(Serialize)]
pub(super) struct Report {
    worker: String,
    pool: String,
    passed: usize,
    failed: usize,
    skipped: usize,
    checks: Vec<Entry>,
    #[serde(skip)]
    tools: Vec<String>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    about: &'static str,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Outcome {
    Passed,
    Failed { expected: String, seen: String },
    Skipped { reason: String },
}

impl Report {
    pub(super) fn new(met: Met) -> Self {
        Self {
            worker: met.worker,
            pool: met.pool,
            passed: 0,
            failed: 0,
            skipped: 0,
            checks: Vec::new(),
            tools: met.tools,
        }
    }

    pub(super) fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|offered| offered == tool)
    }

    pub(super) fn add(&mut self, check: &Check, result: Checked) {
        let (count, outcome) = match result {
            Ok(()) => (&mut self.passed, Outcome::Passed),
            Err(CheckFailure::Failed { expected, seen }) => {
                (&mut self.failed, Outcome::Failed { expected, seen })
            }
            Err(CheckFailure::Skipped(reason)) => (&mut self.skipped, Outcome::Skipped { reason }),
        };
        *count += 1;
        self.checks.push(Entry {
            name: check.name,
            about: check.about,
            outcome,
        });
    }

    pub(super) fn failed(&self) -> usize {
        self.failed
    }

    pub(super) fn last_line(&self) -> String {
        let Some(Entry { name, outcome, .. }) = self.checks.last() else {
            return String::new();
        };
        match outcome {
            Outcome::Passed => format!("ok {name}\n"),
            Outcome::Failed { expected, seen } => {
                let seen = plain(seen);
                format!("FAIL {name}: expected {expected}; seen: {seen}\n")
            }
            Outcome::Skipped { reason } => format!("skip {name}: {reason}\n"),
        }
    }

    pub(super) fn summary(&self) -> String {
        let Self {
            passed,
            failed,
            skipped,
            ..
        } = self;
        let (worker, pool) = (plain(&self.worker), plain(&self.pool));
        format!(
            "worker {worker} of pool {pool}: {passed} passed, {failed} failed, {skipped} skipped\n"
        )
    }
}
