use std::collections::BTreeMap;

use serde::Serialize;

use super::{Case, Turn};
use crate::mcp::Mode;
use crate::outcome::{Better, Outcome};
use crate::report::{RedisUsage, RunReport, median};

/// The figures of a case over all rounds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) mode: Mode,
    /// The case's name, with its era if the other era has a case of this name.
    #[serde(skip)]
    pub(crate) label: String,
    #[serde(skip)]
    pub(crate) base: String,
    pub(crate) cpu_us_per_call: Measured,
    /// Ratios to the base case in the same round, so that a slow minute affects both.
    #[serde(rename = "times_off")]
    pub(crate) times_base: Option<Measured>,
    /// Median difference to the base case in the same round.
    pub(crate) more_us: Option<f64>,
    pub(crate) p50_us: Measured,
    pub(crate) p99_us: Measured,
    pub(crate) calls_per_s: Measured,
    pub(crate) rss_kib: f64,
    pub(crate) other_cores: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redis: Option<RedisUsage>,
    pub(crate) spans_received: u64,
    pub(crate) spans_lost: Option<u64>,
    pub(crate) calls: u64,
    /// The longest round.
    pub(crate) seconds: f64,
    pub(crate) wrong: u64,
    pub(crate) failed: u64,
    pub(crate) examples: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    pub(crate) median: f64,
    /// Spread of the rounds: (maximum − minimum) / median.
    pub(crate) noise: f64,
    pub(crate) rounds: Vec<f64>,
}

impl Measured {
    pub(super) fn of(rounds: impl Iterator<Item = f64>) -> Self {
        let rounds: Vec<f64> = rounds.collect();
        let median = median(rounds.iter().copied());
        let mut measured = Self {
            median,
            noise: 0.0,
            rounds,
        };
        measured.noise = (measured.greatest() - measured.least()) / median;
        measured
    }

    pub(super) fn least(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn greatest(&self) -> f64 {
        let rounds = self.rounds.iter().copied();
        rounds.fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Row {
    /// The CPU time of failed calls would count for the others.
    pub(super) fn is_sound(&self) -> bool {
        self.calls > 0 && self.wrong + self.failed == 0
    }

    /// Returns the ratio to the base case as text.
    pub(crate) fn times_base(&self) -> String {
        let times = self.times_base.as_ref();
        times.map_or("-".to_owned(), |times| number(times.median, 2))
    }

    pub(crate) fn figures(&self, outcome: &mut Outcome) {
        use Better::{Higher, Lower};

        let times_base = self.times_base.as_ref().map_or(f64::NAN, |it| it.median);
        let over = match self.base.starts_with("floor") {
            true => "CPU over the floor",
            false => "CPU over that of the case without features",
        };
        let redis = self.redis.as_ref();
        let redis_us = redis.map_or(f64::NAN, |redis| redis.cpu_us_per_call);
        for (what, value, unit, better) in [
            ("CPU a call", self.cpu_us_per_call.median, "µs", Lower),
            (over, times_base, "×", Lower),
            ("latency p50", self.p50_us.median, "µs", Lower),
            ("latency p99", self.p99_us.median, "µs", Lower),
            ("throughput", self.calls_per_s.median, "1/s", Higher),
            ("resident memory", self.rss_kib / 1024.0, "MiB", Lower),
            ("CPU of Redis a call", redis_us, "µs", Lower),
        ] {
            if value.is_finite() {
                outcome.figure(format!("{}: {what}", self.label), value, unit, better);
            }
        }
    }

    pub(crate) fn violations(&self, outcome: &mut Outcome) {
        let (label, silent) = (&self.label, u64::from(self.calls == 0));
        let example = "not one call was answered while it was measured";
        outcome.violation(format!("{label}: no answers"), silent, example);
        let example = self.examples.first().map_or("", String::as_str);
        outcome.violation(format!("{label}: wrong answers"), self.wrong, example);
        outcome.violation(format!("{label}: failed calls"), self.failed, example);
    }
}

/// `turns` has the rounds of each case. Cases without a round have no row.
pub(super) fn rows(cases: &[Case], turns: &[Vec<Option<Turn>>]) -> Vec<Row> {
    let measured = cases.iter().zip(turns);
    measured
        .filter_map(|pair| row(pair, cases, turns))
        .collect()
}

fn row(
    (case, rounds): (&Case, &Vec<Option<Turn>>),
    cases: &[Case],
    turns: &[Vec<Option<Turn>>],
) -> Option<Row> {
    let done = || rounds.iter().flatten();
    let reports = || done().map(|turn| &turn.report);
    done().next()?;
    let of = |figure: fn(&RunReport) -> f64| Measured::of(reports().map(figure));
    let bases = cases
        .iter()
        .zip(turns)
        .filter(|(it, _)| it.name == case.base);
    let base = bases.max_by_key(|(base, _)| base.mode == case.mode);
    let both: Vec<(f64, f64)> = base.map_or(Vec::new(), |(_, base)| {
        let both = rounds.iter().zip(base);
        let both = both.filter_map(|(it, base)| Some((it.as_ref()?, base.as_ref()?)));
        let cpu_us = |turn: &Turn| turn.report.cpu_us_per_call;
        both.map(|(it, base)| (cpu_us(it), cpu_us(base))).collect()
    });
    let has_base = !both.is_empty();
    let namesakes = cases.iter().filter(|it| it.name == case.name).count();
    Some(Row {
        case: case.name.clone(),
        mode: case.mode,
        label: match namesakes {
            1 => case.name.clone(),
            _ => format!("{} {}", case.mode.name(), case.name),
        },
        base: case.base.clone(),
        cpu_us_per_call: of(|report| report.cpu_us_per_call),
        times_base: has_base.then(|| Measured::of(both.iter().map(|(it, base)| it / base))),
        more_us: has_base.then(|| median(both.iter().map(|(it, base)| it - base))),
        p50_us: of(|report| report.p50_us),
        p99_us: of(|report| report.p99_us),
        calls_per_s: of(|report| report.calls_per_s),
        rss_kib: of(|report| report.rss_kib).median,
        other_cores: of(|report| report.other_cores).median,
        redis: redis(
            reports()
                .filter_map(|report| report.redis.as_ref())
                .collect(),
        ),
        spans_received: done().map(|turn| turn.spans_received).sum(),
        spans_lost: done().map(|turn| turn.spans_lost).sum(),
        calls: reports().map(|report| report.calls).sum(),
        seconds: of(|report| report.seconds).greatest(),
        wrong: reports().map(|report| report.wrong).sum(),
        failed: reports().map(|report| report.failed).sum(),
        examples: reports().flat_map(|it| it.examples.clone()).collect(),
    })
}

fn redis(rounds: Vec<&RedisUsage>) -> Option<RedisUsage> {
    rounds.first()?;
    let mut commands = BTreeMap::new();
    for (name, count) in rounds.iter().flat_map(|usage| &usage.commands) {
        *commands.entry(name.clone()).or_default() += count;
    }
    Some(RedisUsage {
        cpu_us_per_call: median(rounds.iter().map(|usage| usage.cpu_us_per_call)),
        commands,
    })
}

pub(crate) fn number(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

#[cfg(test)]
pub(super) mod tests;
