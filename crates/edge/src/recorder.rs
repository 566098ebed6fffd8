//! A posted request is counted once, when its answer is known: a JSON answer when it is written, a
//! streamed one when its response passes or is lost. On a session's single stream (HTTP+SSE,
//! WebSocket), an accepted request counts as answered.

mod arrival;
mod operation;
mod posted;
mod request;
mod ring;
mod said;
mod tools;

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shoal_ports::{ErrorReport, LatencyHistogram, Listing, Outcomes, RecentCalls, Step};
use shoal_protocol::code;

pub(crate) use operation::WhyUnanswered;
pub(crate) use posted::Posted;
pub(crate) use request::RequestRecord;
use ring::Ring;
pub(crate) use said::{Said, said};
use tools::Tools;

use crate::refusal::Refusal;

const STEP: Duration = Duration::from_secs(5);
/// The steps that are kept: 15 minutes.
const STEPS: usize = 180;
const ERRORS: usize = 256;

/// Records requests' outcomes and durations, and recent errors. Clones record together.
#[derive(Clone, Default)]
pub struct Recorder(Arc<RecorderInner>);

struct RecorderInner {
    now: ToolCounters,
    steps: Ring<Step>,
    errors: Ring<ErrorReport>,
    /// Failures of tools. They have a ring of their own, because they would displace errors.
    failures: Ring<ErrorReport>,
    tools: Tools,
}

#[derive(Default)]
struct ToolCounters {
    outcomes: [AtomicU64; 4],
    latency: LatencyHistogram,
}

impl ToolCounters {
    fn count(&self, ended: MessageOutcome, took: Duration) {
        self.outcomes[ended as usize].fetch_add(1, Ordering::Relaxed);
        if ended != MessageOutcome::Cancelled {
            self.latency.record(took);
        }
    }

    fn take(&self) -> (Outcomes, Vec<u64>) {
        let outcomes = self.outcomes_by(|counter| counter.swap(0, Ordering::Relaxed));
        let mut latency = self.latency.take();
        if latency.iter().all(|count| *count == 0) {
            latency = Vec::new();
        }
        (outcomes, latency)
    }

    fn outcomes(&self) -> Outcomes {
        self.outcomes_by(|counter| counter.load(Ordering::Relaxed))
    }

    fn outcomes_by(&self, read: impl Fn(&AtomicU64) -> u64) -> Outcomes {
        let [ok, rejected, failed, cancelled] = &self.outcomes;
        Outcomes {
            ok: read(ok),
            rejected: read(rejected),
            failed: read(failed),
            cancelled: read(cancelled),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    Ok,
    Rejected,
    Failed,
    Cancelled,
}

/// The gauges at the end of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sessions, in memory or not.
    pub sessions: u64,
    /// Open streams.
    pub streams: u64,
    /// Calls in flight.
    pub calls: u64,
}

impl Default for RecorderInner {
    fn default() -> Self {
        Self {
            now: ToolCounters::default(),
            steps: Ring::new(STEPS),
            errors: Ring::new(ERRORS),
            failures: Ring::new(ERRORS),
            tools: Tools::default(),
        }
    }
}

impl Recorder {
    /// The length of a step.
    pub const STEP: Duration = STEP;

    /// Ends the step that began at `at` (seconds since 1970). Call it once per step.
    pub fn end_step(&self, at: u64, gauges: Gauges) {
        let shared = &self.0;
        shared.tools.end_step();
        let (outcomes, latency) = shared.now.take();
        shared.steps.push(Step {
            at,
            outcomes,
            latency,
            sessions: gauges.sessions,
            streams: gauges.streams,
            calls: gauges.calls,
        });
    }

    /// Returns finished steps, the oldest first.
    pub fn steps(&self) -> Vec<Step> {
        self.0.steps.oldest_first()
    }

    /// Returns a tool's recent calls.
    pub fn calls_of(&self, tool: &str) -> RecentCalls {
        self.0.tools.recent(tool)
    }

    /// Lists errors and tool failures, the newest first.
    pub fn errors(&self, limit: usize) -> Listing<ErrorReport> {
        let mut errors = self.0.errors.newest_first(limit);
        let failures = self.0.failures.newest_first(limit);
        errors.items.extend(failures.items);
        errors.items.sort_by_key(|error| Reverse(error.at_ms));
        errors.items.truncate(limit);
        errors.total += failures.total;
        errors
    }

    pub(crate) fn refused_unread(&self, why: &Refusal, took: Duration) {
        let error = why.error();
        self.count(MessageOutcome::of_code(error.code), took);
        self.0.errors.push(request::unread(&error));
    }

    fn count(&self, ended: MessageOutcome, took: Duration) {
        self.0.now.count(ended, took);
    }

    fn count_call(&self, tool: &str, ended: MessageOutcome, took: Duration) {
        self.0.tools.count(tool, ended, took);
    }
}

impl MessageOutcome {
    fn of_code(code: i64) -> Self {
        match code {
            code::OVERLOADED
            | code::NOT_EXECUTED
            | code::OUTCOME_UNKNOWN
            | code::DEADLINE_EXCEEDED
            | code::INTERNAL_ERROR => Self::Failed,
            code::REQUEST_CANCELLED => Self::Cancelled,
            _ => Self::Rejected,
        }
    }
}

#[cfg(test)]
mod tests;
