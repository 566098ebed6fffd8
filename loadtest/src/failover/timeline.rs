use std::time::Duration;

use tokio::time::Instant;

use crate::outcome::Outcome;
use crate::steady::Done;

const STEP: Duration = Duration::from_millis(100);

fn per_step(began: Instant, moments: &[Instant]) -> Vec<(f64, f64)> {
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
    counts.into_iter().enumerate().map(point).collect()
}

pub(super) fn show(
    outcome: &mut Outcome,
    began: Instant,
    steady: &[Done],
    (name, moments): (&str, &[Instant]),
    (what, killed): (&str, Instant),
) {
    let answers: Vec<Instant> = steady.iter().map(|done| done.answered).collect();
    let unit = "per 100 ms";
    outcome.series("steady calls answered", unit, per_step(began, &answers));
    outcome.series(name, unit, per_step(began, moments));
    let at_s = killed.duration_since(began).as_secs_f64();
    outcome.plain("time of the kill", at_s, "s");
    outcome.mark(at_s, what);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::per_step;

    #[test]
    fn moments_are_counted_in_their_tenth_of_a_second() {
        let began = Instant::now();
        let moments = [10, 20, 150, 399].map(|ms| began + Duration::from_millis(ms));
        let points = per_step(began, &moments);
        let counts: Vec<f64> = points.iter().map(|point| point.1).collect();
        assert_eq!(counts, [2.0, 1.0, 0.0, 1.0]);
        assert!(per_step(began, &[]).is_empty());
    }
}
