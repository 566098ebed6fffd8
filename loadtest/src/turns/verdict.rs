use super::{Row, percent};
use crate::outcome::Verdict;

/// Significance level of the sign test.
const MOST_CHANCE: f64 = 0.05;

/// With a greater spread, rounds cannot show that nothing changed.
const MOST_NOISE: f64 = 0.25;

/// The limit of a figure of a case.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bar {
    /// Maximum CPU time, as a ratio to that of the base case.
    TimesBase(f64),
    /// The same, and the ratio must lie below it in each round, or in so many rounds that chance is unlikely.
    EachRound(f64),
    /// CPU-microseconds of Redis per call.
    Redis(f64),
    /// Minimum ratio of CPU times: the cheapest of these cases to this case.
    TimesFewer(f64, &'static [&'static str]),
    /// Throughput and p99 of this other case, within the noise.
    AsGoodAs(&'static str),
}

/// Skips bars without a measured row or reference.
pub(super) fn verdicts(rows: &[Row], bars: &[(&str, Bar)]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (case, bar) in bars {
        let judged = rows.iter().filter(|row| row.case == *case);
        verdicts.extend(judged.filter_map(|row| verdict(row, *bar, rows)));
    }
    verdicts
}

fn verdict(row: &Row, bar: Bar, rows: &[Row]) -> Option<Verdict> {
    let named = |name: &str| rows.iter().find(|row| row.case == name);
    let Row { label, base, .. } = row;
    let base = base.split(',').next().unwrap_or_default();
    let (what, held) = match bar {
        Bar::TimesBase(most) => {
            let times = row.times_base.as_ref()?.median;
            let what = format!("{label} {times:.2} × {base}: at most {most} ×");
            (what, row.is_sound().then_some(times <= most))
        }
        Bar::EachRound(most) => {
            let times = row.times_base.as_ref()?;
            let what = format!(
                "{label} {:.2} × {base} by CPU time, {:.2} to {:.2} in single rounds: less than {most} ×",
                times.median,
                times.least(),
                times.greatest()
            );
            (what, are_below(most, &times.rounds))
        }
        Bar::Redis(most) => {
            let cpu_us = row.redis.as_ref()?.cpu_us_per_call;
            let what = format!("{label} {cpu_us:.2} µs of Redis: at most {most} µs");
            (what, row.is_sound().then_some(cpu_us <= most))
        }
        Bar::TimesFewer(least, others) => {
            let cpu_us = |row: &Row| row.cpu_us_per_call.median;
            let others = others.iter().filter_map(|name| named(name));
            let cheapest = others.min_by(|a, b| cpu_us(a).total_cmp(&cpu_us(b)))?;
            let times = cpu_us(cheapest) / cpu_us(row);
            let what = format!(
                "{label} {:.2} µs, {times:.1} × fewer than {}: at least {least} ×",
                cpu_us(row),
                cheapest.case
            );
            let are_sound = row.is_sound() && cheapest.is_sound();
            (what, are_sound.then_some(times >= least))
        }
        Bar::AsGoodAs(healthy) => as_good_as(row, named(healthy)?),
    };
    Some(Verdict { what, held })
}

/// If the rounds lie on both sides of the limit, only a significant sign test decides.
fn are_below(most: f64, rounds: &[f64]) -> Option<bool> {
    let below = rounds.iter().filter(|times| **times < most).count();
    let above = rounds.len() - below;
    match (below, above) {
        (0, _) => Some(false),
        (_, 0) => Some(true),
        _ if by_chance(below, above) < MOST_CHANCE => Some(true),
        _ if by_chance(above, below) < MOST_CHANCE => Some(false),
        _ => None,
    }
}

/// The probability that by chance at most `few` rounds lie on a given side of the limit.
fn by_chance(many: usize, few: usize) -> f64 {
    let rounds = many + few;
    // The binomial coefficient of `chosen` rounds.
    let mut ways = 1.0;
    let mut all = 0.0;
    for chosen in 0..=few {
        all += ways;
        ways *= (rounds - chosen) as f64 / (chosen + 1) as f64;
    }
    all / 2_f64.powf(rounds as f64)
}

fn as_good_as(row: &Row, healthy: &Row) -> (String, Option<bool>) {
    let noise = |of: fn(&Row) -> f64| of(row).max(of(healthy));
    let calls = row.calls_per_s.median / healthy.calls_per_s.median;
    let calls_noise = noise(|row| row.calls_per_s.noise);
    let p99 = row.p99_us.median / healthy.p99_us.median;
    let p99_noise = noise(|row| row.p99_us.noise);
    let what = format!(
        "{} {calls:.2} × the calls/s of a collector that answers (noise {}), {p99:.2} × its p99 (noise {})",
        row.label,
        percent(calls_noise),
        percent(p99_noise)
    );
    // A change that exceeds the noise counts even if the rounds are noisy.
    let is_worse = calls < 1.0 - calls_noise || p99 > 1.0 + p99_noise;
    let is_quiet = calls_noise.max(p99_noise) <= MOST_NOISE;
    (what, (is_worse || is_quiet).then_some(!is_worse))
}

#[cfg(test)]
mod tests;
