use serde::Serialize;

use super::check_failure::{CheckFailure, CheckResult};
use super::checks::ConformanceCheck;
use super::listener::Met;
use crate::print::plain;

#[derive(Serialize)]
pub(super) struct CheckReport {
    worker: String,
    pool: String,
    passed: usize,
    failed: usize,
    skipped: usize,
    checks: Vec<CheckEntry>,
    #[serde(skip)]
    tools: Vec<String>,
}

#[derive(Serialize)]
struct CheckEntry {
    name: &'static str,
    about: &'static str,
    #[serde(flatten)]
    outcome: CheckOutcome,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum CheckOutcome {
    Passed,
    Failed { expected: String, seen: String },
    Skipped { reason: String },
}

impl CheckReport {
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

    pub(super) fn add(&mut self, check: &ConformanceCheck, result: CheckResult) {
        let (count, outcome) = match result {
            Ok(()) => (&mut self.passed, CheckOutcome::Passed),
            Err(CheckFailure::Failed { expected, seen }) => {
                (&mut self.failed, CheckOutcome::Failed { expected, seen })
            }
            Err(CheckFailure::Skipped(reason)) => {
                (&mut self.skipped, CheckOutcome::Skipped { reason })
            }
        };
        *count += 1;
        self.checks.push(CheckEntry {
            name: check.name,
            about: check.about,
            outcome,
        });
    }

    pub(super) fn failed(&self) -> usize {
        self.failed
    }

    pub(super) fn last_line(&self) -> String {
        let Some(CheckEntry { name, outcome, .. }) = self.checks.last() else {
            return String::new();
        };
        match outcome {
            CheckOutcome::Passed => format!("ok {name}\n"),
            CheckOutcome::Failed { expected, seen } => {
                let seen = plain(seen);
                format!("FAIL {name}: expected {expected}; seen: {seen}\n")
            }
            CheckOutcome::Skipped { reason } => format!("skip {name}: {reason}\n"),
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
