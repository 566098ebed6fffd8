//! What is counted on the way to the owners.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shoal_telemetry::metrics::{Metrics, metrics};

use crate::status::{PauseStatus, RoutingStatus};

/// Each bucket ends a quarter later than the one before; the last holds whatever is longer than 20 min.
const BUCKETS: usize = 64;

/// Counters since the start.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) redelivered: Counter,
    pub(crate) reattached: Counter,
    pub(crate) lost_streams: Counter,
    pub(crate) relayed: Counter,
    pub(crate) given_up: Counter,
    pub(crate) takeovers: Pauses,
}

/// A number that grows, here and in the metrics.
#[derive(Debug)]
pub(crate) struct Counter {
    count: AtomicU64,
    metric: fn(&Metrics),
}

/// A histogram of pauses, here and in the metrics.
#[derive(Debug)]
pub(crate) struct Pauses {
    buckets: [AtomicU64; BUCKETS],
    longest: AtomicU64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            redelivered: Counter::of(|all| all.nodes.redelivered()),
            reattached: Counter::of(|all| all.routes.reattached()),
            lost_streams: Counter::of(|all| all.routes.lost_stream()),
            relayed: Counter::of(|all| all.routes.relayed()),
            given_up: Counter::of(|all| all.routes.given_up()),
            takeovers: Pauses::default(),
        }
    }
}

impl Tally {
    pub(crate) fn status(&self, cached_owners: usize) -> RoutingStatus {
        RoutingStatus {
            cached_owners,
            redelivered: self.redelivered.get(),
            reattached: self.reattached.get(),
            lost_streams: self.lost_streams.get(),
            relayed: self.relayed.get(),
            given_up: self.given_up.get(),
            takeovers: self.takeovers.status(),
        }
    }
}

impl Counter {
    fn of(metric: fn(&Metrics)) -> Self {
        Self {
            count: AtomicU64::new(0),
            metric,
        }
    }

    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        (self.metric)(metrics());
    }

    fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            longest: AtomicU64::new(0),
        }
    }
}

impl Pauses {
    pub(crate) fn record(&self, pause: Duration) {
        metrics().routes.waited(pause);
        let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let at = (0..BUCKETS - 1).find(|at| ms <= end(*at));
        self.buckets[at.unwrap_or(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.longest.fetch_max(ms, Ordering::Relaxed);
    }

    fn status(&self) -> PauseStatus {
        let counts: Vec<u64> = self
            .buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .collect();
        let count = counts.iter().sum();
        let max_ms = self.longest.load(Ordering::Relaxed);
        PauseStatus {
            count,
            p50_ms: quantile(&counts, count.div_ceil(2)).min(max_ms),
            p99_ms: quantile(&counts, count - count / 100).min(max_ms),
            max_ms,
        }
    }
}

/// The end of a bucket, in milliseconds.
fn end(bucket: usize) -> u64 {
    let growth = (0..bucket).fold(1.0, |end: f64, _| end * 1.25);
    growth.ceil() as u64
}

fn quantile(counts: &[u64], rank: u64) -> u64 {
    let mut seen = 0;
    let at = counts.iter().position(|count| {
        seen += count;
        seen >= rank
    });
    match at {
        Some(at) if at < BUCKETS - 1 => end(at),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BUCKETS, Pauses, end};
    use crate::status::PauseStatus;

    #[test]
    fn pauses_are_known_to_within_a_quarter() {
        let pauses = Pauses::default();
        assert_eq!(pauses.status(), PauseStatus::default());
        for ms in 1..=1000 {
            pauses.record(Duration::from_millis(ms));
        }
        let status = pauses.status();
        assert_eq!((status.count, status.max_ms), (1000, 1000));
        assert!((500..=625).contains(&status.p50_ms), "{status:?}");
        assert!((990..=1000).contains(&status.p99_ms), "{status:?}");
        assert!(end(BUCKETS - 2) > 1_000_000);
        pauses.record(Duration::from_secs(86_400));
        assert_eq!(pauses.status().max_ms, 86_400_000);
    }
}
