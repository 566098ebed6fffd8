use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::Shared;
use crate::engine::watch::{Reading, Seen};
use crate::times;

/// The figures of a load in a closed loop.
#[derive(Debug, Clone)]
pub(crate) struct RunReport {
    pub(crate) seconds: f64,
    /// Calls in the measured time.
    pub(crate) calls: u64,
    pub(crate) calls_per_s: f64,
    /// The time from sending a request to the end of its answer.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Not a number if the server's processes are unknown, as `rss_kib`.
    pub(crate) cpu_us_per_call: f64,
    pub(crate) rss_kib: f64,
    pub(crate) redis: Option<RedisUsage>,
    /// Cores that other programs used. If this is well above 0, the figures are unreliable.
    pub(crate) other_cores: f64,
    /// Includes the warm-up.
    pub(crate) wrong: u64,
    /// Includes the warm-up.
    pub(crate) failed: u64,
    pub(crate) examples: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct RedisUsage {
    pub(crate) cpu_us_per_call: f64,
    pub(crate) commands: BTreeMap<String, u64>,
}

impl RedisUsage {
    fn between(first: &Reading, last: &Reading, calls: u64) -> Option<Self> {
        let ((cpu_before, before), (cpu, after)) = first.redis.as_ref().zip(last.redis.as_ref())?;
        let since = after.iter().map(|(name, count)| {
            let earlier = before.get(name).copied().unwrap_or_default();
            (name.clone(), count.saturating_sub(earlier))
        });
        let cpu = cpu.saturating_sub(*cpu_before).as_secs_f64();
        Some(Self {
            cpu_us_per_call: cpu * 1e6 / calls.max(1) as f64,
            commands: since.filter(|(_, count)| *count > 0).collect(),
        })
    }
}

impl RunReport {
    pub(crate) fn of(shared: &Shared, Seen { first, last, .. }: &Seen) -> Self {
        let (calls, seconds) = (last.calls - first.calls, (last.at - first.at).as_secs_f64());
        let usage = first.usage.as_ref().zip(last.usage.as_ref());
        let (cpu, rss_kib, others) = usage.map_or((f64::NAN, f64::NAN, 0.0), |(first, last)| {
            let cpu = last.0.cpu.saturating_sub(first.0.cpu).as_secs_f64();
            let others = last.1.saturating_sub(first.1).as_secs_f64();
            (cpu, last.0.rss_kib as f64, others)
        });
        let counts = shared.tally.counts();
        let sent = &counts.stages[1].from_sent;
        let findings = &shared.tally.findings;
        let wrong = findings.wrong();
        let examples = findings.violations().into_iter().map(|one| one.example);
        Self {
            seconds,
            calls,
            calls_per_s: calls as f64 / seconds,
            p50_us: times::quantile_ms(sent, 0.5) * 1e3,
            p99_us: times::quantile_ms(sent, 0.99) * 1e3,
            cpu_us_per_call: cpu * 1e6 / calls.max(1) as f64,
            rss_kib,
            redis: RedisUsage::between(first, last, calls),
            other_cores: others / seconds,
            wrong,
            failed: findings.count() - wrong + counts.refused,
            examples: examples.collect(),
        }
    }
}

pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
impl RunReport {
    pub(crate) fn made_up(cpu_us: f64) -> Self {
        Self {
            seconds: 1.0,
            calls: 1,
            calls_per_s: 1.0,
            p50_us: 1.0,
            p99_us: 1.0,
            cpu_us_per_call: cpu_us,
            rss_kib: 1.0,
            redis: None,
            other_cores: 0.0,
            wrong: 0,
            failed: 0,
            examples: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median([9.0, 1.0, 3.0]), 3.0);
        assert_eq!(median([]), 0.0);
    }
}
