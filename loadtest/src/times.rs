//! Histograms of times, in nanoseconds.

use std::time::Duration;

use hdrhistogram::Histogram;

const LONGEST_NS: u64 = 3_600_000_000_000;

/// Returns an empty histogram with fixed bounds, which records longer times as the longest.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are in order")
}

pub(crate) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

pub(crate) fn of(times: impl IntoIterator<Item = Duration>) -> Histogram<u64> {
    let mut histogram = histogram();
    for time in times {
        record(&mut histogram, time);
    }
    histogram
}

pub(crate) fn quantile(histogram: &Histogram<u64>, at: f64) -> Duration {
    Duration::from_nanos(histogram.value_at_quantile(at))
}

pub(crate) fn quantile_ms(histogram: &Histogram<u64>, at: f64) -> f64 {
    quantile(histogram, at).as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{of, quantile};

    #[test]
    fn quantiles_are_the_durations_that_went_in() {
        let times = (1..=100).map(Duration::from_millis);
        let p99 = quantile(&of(times), 0.99);
        let off = p99.abs_diff(Duration::from_millis(99));
        assert!(off < Duration::from_millis(1), "{p99:?}");
    }
}
