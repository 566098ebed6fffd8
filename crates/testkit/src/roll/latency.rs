use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::tally::Sample;

const LONGEST_US: u64 = 600_000_000;

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

impl Latency {
    /// Computes the latency of these calls.
    #[must_use]
    pub fn of<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Self {
        let mut histogram =
            Histogram::<u64>::new_with_max(LONGEST_US, 3).expect("the bounds make sense");
        for sample in samples {
            let late = sample.took.saturating_sub(sample.takes);
            let late = u64::try_from(late.as_micros()).unwrap_or(LONGEST_US);
            histogram.saturating_record(late);
        }
        let at = |share| {
            let late = Duration::from_micros(histogram.value_at_quantile(share));
            late.as_secs_f64() * 1000.0
        };
        Self {
            calls: histogram.len(),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    }
}
