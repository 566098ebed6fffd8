//! How long calls took beyond the time of their tools.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::tally::Sample;

/// The longest time that is told apart, in microseconds.
const LONGEST_US: u64 = 600_000_000;

/// How long calls took beyond the time of their tools, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many there were.
    pub calls: u64,
    /// Half of them took at most this long.
    pub p50_ms: f64,
    /// All but one in a hundred.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Latency {
    /// Of these calls.
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
