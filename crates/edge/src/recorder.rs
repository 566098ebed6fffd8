//! How many requests end, how, and how long they take; and which ended badly.
//!
//! A request is counted once, when its answer is known: a JSON answer as it is written, a streamed one when
//! its response passes, or never arrives. What is counted is MCP requests that are posted: no notifications,
//! and no streams that clients hold open. A tool's own failure (`isError`) counts as an error of the tool. Over HTTP+SSE, whose
//! answers take another way, a request counts as answered when it is taken.

mod came;
mod operation;
mod posted;
mod request;
mod ring;
mod said;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shoal_ports::{ErrorReport, LatencyHistogram, Listing, Outcomes, Step};
use shoal_protocol::code;

pub(crate) use operation::Unanswered;
pub(crate) use posted::Posted;
pub(crate) use request::RequestRecord;
use ring::Ring;

use crate::refusal::Refusal;

/// The length of a step.
const STEP: Duration = Duration::from_secs(5);
/// Steps that are kept: 15 minutes.
const STEPS: usize = 180;
/// Errors that are kept.
const ERRORS: usize = 256;

/// Records what becomes of requests. A cheap handle: clones record together.
#[derive(Clone, Default)]
pub struct Recorder(Arc<RecorderInner>);

struct RecorderInner {
    now: Counters,
    steps: Ring<Step>,
    errors: Ring<ErrorReport>,
}

/// What has been counted in the step that is under way.
#[derive(Default)]
struct Counters {
    outcomes: [AtomicU64; 4],
    latency: LatencyHistogram,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Ok,
    Rejected,
    Failed,
    Cancelled,
}

/// How things stand at the end of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sessions, in memory or not.
    pub sessions: u64,
    /// Streams that are open.
    pub streams: u64,
    /// Calls in flight.
    pub calls: u64,
}

impl Default for RecorderInner {
    fn default() -> Self {
        Self {
            now: Counters::default(),
            steps: Ring::new(STEPS),
            errors: Ring::new(ERRORS),
        }
    }
}

impl Recorder {
    /// How long a step is.
    pub const STEP: Duration = STEP;

    /// Ends the step that began at `at` (seconds since 1970). To be called once for each step.
    pub fn end_step(&self, at: u64, gauges: Gauges) {
        let shared = &self.0;
        let taken = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let [ok, rejected, failed, cancelled] = &shared.now.outcomes;
        let mut latency = shared.now.latency.take();
        if latency.iter().all(|count| *count == 0) {
            latency = Vec::new();
        }
        shared.steps.push(Step {
            at,
            outcomes: Outcomes {
                ok: taken(ok),
                rejected: taken(rejected),
                failed: taken(failed),
                cancelled: taken(cancelled),
            },
            latency,
            sessions: gauges.sessions,
            streams: gauges.streams,
            calls: gauges.calls,
        });
    }

    /// The steps that have ended, the oldest first.
    pub fn steps(&self) -> Vec<Step> {
        self.0.steps.oldest_first()
    }

    /// Requests that ended badly, the newest first.
    pub fn errors(&self, limit: usize) -> Listing<ErrorReport> {
        self.0.errors.newest_first(limit)
    }

    /// A post that was refused before anybody could tell what it asks for.
    pub(crate) fn refused_unread(&self, why: &Refusal, took: Duration) {
        let error = why.error();
        self.count(Ended::of_code(error.code), took);
        self.0.errors.push(request::unread(&error));
    }

    fn count(&self, ended: Ended, took: Duration) {
        let now = &self.0.now;
        now.outcomes[ended as usize].fetch_add(1, Ordering::Relaxed);
        if ended != Ended::Cancelled {
            now.latency.record(took);
        }
    }
}

impl Ended {
    /// How a request ended that was answered with this error code.
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
