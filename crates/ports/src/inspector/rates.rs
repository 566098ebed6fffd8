use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The upper bounds of the latency buckets, in microseconds; one more bucket holds longer times.
/// Nodes exchange the buckets, so other bounds need a new member beside [`Step::latency`].
pub const LATENCY_BOUNDS: [u64; 27] = [
    250,
    500,
    1_000,
    1_500,
    2_200,
    3_300,
    5_000,
    7_500,
    11_000,
    16_500,
    25_000,
    37_500,
    56_000,
    85_000,
    130_000,
    200_000,
    300_000,
    450_000,
    700_000,
    1_000_000,
    1_500_000,
    2_200_000,
    3_300_000,
    5_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
];

/// A lock-free latency histogram.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    buckets: [AtomicU64; LATENCY_BOUNDS.len() + 1],
}

impl LatencyHistogram {
    /// Records one latency.
    pub fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = LATENCY_BOUNDS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns all buckets' counts, for [`quantile`].
    pub fn counts(&self) -> Vec<u64> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.buckets.iter().map(read).collect()
    }

    /// Returns the [`counts`](Self::counts) and resets them.
    pub fn take(&self) -> Vec<u64> {
        let taken = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        self.buckets.iter().map(taken).collect()
    }
}

/// Requests that ended within a step, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcomes {
    /// Answered with a result.
    pub ok: u64,
    /// Ended with an error of the request or the tool.
    pub rejected: u64,
    /// Ended with Shoal's error: overloaded, not executed, outcome unknown, deadline, internal.
    pub failed: u64,
    /// Cancelled by the client, or abandoned.
    pub cancelled: u64,
}

impl Outcomes {
    /// Counts all requests.
    pub fn total(&self) -> u64 {
        self.ok + self.rejected + self.failed + self.cancelled
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.rejected += other.rejected;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
    }
}

pub(super) fn add_latency(sum: &mut Vec<u64>, more: &[u64]) {
    if sum.len() < more.len() {
        sum.resize(more.len(), 0);
    }
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

/// Counts of one step of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Start of the step, in seconds since 1970; a multiple of the step's length.
    pub at: u64,
    /// Requests by outcome.
    pub outcomes: Outcomes,
    /// Latencies of requests that were not cancelled: a count for each of [`LATENCY_BOUNDS`], and
    /// one for longer times. May be empty.
    pub latency: Vec<u64>,
    /// Sessions, live or passivated.
    pub sessions: u64,
    /// Streams that clients hold open at this edge.
    pub streams: u64,
    /// Calls in flight.
    pub calls: u64,
}

impl Step {
    /// Adds the counts of another node for the same step.
    pub fn add(&mut self, other: &Self) {
        self.outcomes.add(&other.outcomes);
        self.sessions += other.sessions;
        self.streams += other.streams;
        self.calls += other.calls;
        add_latency(&mut self.latency, &other.latency);
    }
}

/// Returns the microseconds within which the fraction `part` of requests was answered. `None`
/// without requests.
pub fn quantile(latency: &[u64], part: f64) -> Option<u64> {
    let total: u64 = latency.iter().sum();
    if total == 0 {
        return None;
    }
    let rank = (total as f64 * part).max(1.0);
    let mut before = 0;
    for (at, count) in latency.iter().enumerate() {
        let after = before + count;
        if *count > 0 && after as f64 >= rank {
            let longest = LATENCY_BOUNDS[LATENCY_BOUNDS.len() - 1];
            let from = at.checked_sub(1).map_or(0, |at| bound(at, longest));
            let to = bound(at, longest);
            let within = (rank - before as f64) / *count as f64;
            return Some(from + ((to - from) as f64 * within) as u64);
        }
        before = after;
    }
    None
}

fn bound(at: usize, longest: u64) -> u64 {
    LATENCY_BOUNDS.get(at).copied().unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use super::{LATENCY_BOUNDS, Step, quantile};

    #[test]
    fn quantiles_fall_into_the_bucket_of_their_rank() {
        assert_eq!(quantile(&[], 0.5), None);
        let mut latency = vec![0; LATENCY_BOUNDS.len() + 1];
        assert_eq!(quantile(&latency, 0.5), None);
        latency[2] = 98;
        latency[10] = 1;
        latency[LATENCY_BOUNDS.len()] = 1;
        let at = |part| quantile(&latency, part).unwrap();
        assert!((500..=1_000).contains(&at(0.5)), "{}", at(0.5));
        assert!((16_500..=25_000).contains(&at(0.99)), "{}", at(0.99));
        assert_eq!(at(1.0), 100_000_000);
        assert!(at(0.5) < at(0.95));
    }

    #[test]
    fn steps_of_nodes_add_up() {
        let mut sum = Step {
            at: 5,
            ..Step::default()
        };
        let mut other = sum.clone();
        other.outcomes.ok = 2;
        other.latency = vec![1, 1];
        other.sessions = 3;
        sum.add(&other);
        sum.add(&other);
        assert_eq!((sum.outcomes.total(), sum.sessions), (4, 6));
        assert_eq!(sum.latency, [2, 2]);
    }
}
