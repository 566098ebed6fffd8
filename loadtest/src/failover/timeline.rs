use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use super::steady::Done;
use crate::outcome::{Better, Mark, Outcome, Series};

const STEP: Duration = Duration::from_millis(100);

const LONGEST_NS: u64 = 3_600_000_000_000;

pub(crate) fn histogram(times: impl IntoIterator<Item = Duration>) -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are in order");
    for time in times {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        histogram.saturating_record(nanoseconds);
    }
    histogram
}

pub(crate) fn quantile(histogram: &Histogram<u64>, at: f64) -> Duration {
    Duration::from_nanos(histogram.value_at_quantile(at))
}

fn per_step(name: &str, began: Instant, moments: &[Instant]) -> Series {
    let step_of = |moment: &Instant| {
        let since = moment.saturating_duration_since(began);
        (since.as_millis() / STEP.as_millis()) as usize
    };
    let steps = moments.iter().map(step_of).max().map_or(0, |last| last + 1);
    let mut counts = vec![0_u64; steps];
    for moment in moments {
        counts[step_of(moment)] += 1;
    }
    let point = |(step, count): (usize, u64)| (step as f64 * STEP.as_secs_f64(), count as f64);
    Series {
        name: name.to_owned(),
        unit: "per 100 ms".to_owned(),
        points: counts.into_iter().enumerate().map(point).collect(),
    }
}

pub(super) fn show(
    outcome: &mut Outcome,
    began: Instant,
    steady: &[Done],
    (name, moments): (&str, &[Instant]),
    (what, killed): (&str, Instant),
) {
    let answers: Vec<Instant> = steady.iter().map(|done| done.answered).collect();
    let steady = per_step("steady calls answered", began, &answers);
    outcome.series.push(steady);
    outcome.series.push(per_step(name, began, moments));
    let at_s = killed.duration_since(began).as_secs_f64();
    outcome.figure("time of the kill", at_s, "s", Better::Neither);
    outcome.marks.push(Mark {
        at_s,
        what: what.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{histogram, per_step, quantile};

    #[test]
    fn quantiles_are_the_durations_that_went_in() {
        let times = (1..=100).map(Duration::from_millis);
        let p99 = quantile(&histogram(times), 0.99);
        assert!(
            p99.abs_diff(Duration::from_millis(99)) < Duration::from_millis(1),
            "{p99:?}"
        );
    }

    #[test]
    fn moments_are_counted_in_their_tenth_of_a_second() {
        let began = Instant::now();
        let moments = [10, 20, 150, 399].map(|ms| began + Duration::from_millis(ms));
        let series = per_step("calls", began, &moments);
        let counts: Vec<f64> = series.points.iter().map(|point| point.1).collect();
        assert_eq!(counts, [2.0, 1.0, 0.0, 1.0]);
        assert!(per_step("calls", began, &[]).points.is_empty());
    }
}
