use std::fmt;

use serde::Serialize;

use super::case::Part;
use super::row::{Measured, Row, percent};

/// Limit for the CPU time with telemetry or security, as a ratio to the CPU time without.
const MOST_TIMES_OFF: f64 = 1.15;

/// Significance level of the sign test.
const MOST_CHANCE: f64 = 0.05;

/// With a greater spread, rounds cannot show that nothing changed.
const MOST_NOISE: f64 = 0.25;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Held,
    NotHeld,
    TooNoisy,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Judgement {
    case: &'static str,
    pub(super) verdict: Verdict,
    finding: Finding,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Finding {
    Cost {
        times_off: f64,
        least: f64,
        greatest: f64,
    },
    Outage {
        calls_per_s: Change,
        p99: Change,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Change {
    times_healthy: f64,
    noise: f64,
}

pub(super) fn judge(rows: &[Row]) -> Vec<Judgement> {
    let beside = |row: &Row, part| {
        let mut same = rows.iter().filter(|it| it.is_beside(row));
        same.find(|it| it.part == part)
    };
    let judged = rows.iter().filter_map(|row| {
        let (finding, verdict) = match row.part {
            Part::Sampled | Part::Secured => cost(row.times_off.as_ref()?),
            Part::Outage => outage(row, beside(row, Part::Sampled)?),
            Part::Off | Part::Shown => return None,
        };
        Some(Judgement {
            case: row.case,
            verdict,
            finding,
        })
    });
    judged.collect()
}

/// If the rounds lie on both sides of the limit, only a significant sign test decides.
fn cost(times_off: &Measured) -> (Finding, Verdict) {
    let rounds = || times_off.rounds.iter().copied();
    let held = rounds().filter(|times| *times < MOST_TIMES_OFF).count();
    let broken = times_off.rounds.len() - held;
    let verdict = match (held, broken) {
        (0, _) => Verdict::NotHeld,
        (_, 0) => Verdict::Held,
        _ if by_chance(held, broken) < MOST_CHANCE => Verdict::Held,
        _ if by_chance(broken, held) < MOST_CHANCE => Verdict::NotHeld,
        _ => Verdict::TooNoisy,
    };
    let finding = Finding::Cost {
        times_off: times_off.median,
        least: rounds().fold(f64::INFINITY, f64::min),
        greatest: rounds().fold(f64::NEG_INFINITY, f64::max),
    };
    (finding, verdict)
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

fn outage(row: &Row, healthy: &Row) -> (Finding, Verdict) {
    let calls_per_s = Change::new(&row.calls_per_s, &healthy.calls_per_s);
    let p99 = Change::new(&row.p99_us, &healthy.p99_us);
    let is_worse =
        calls_per_s.times_healthy < 1.0 - calls_per_s.noise || p99.times_healthy > 1.0 + p99.noise;
    let verdict = match calls_per_s.noise.max(p99.noise) {
        // A change that exceeds the noise counts even if the rounds are noisy.
        _ if is_worse => Verdict::NotHeld,
        noise if noise > MOST_NOISE => Verdict::TooNoisy,
        _ => Verdict::Held,
    };
    (Finding::Outage { calls_per_s, p99 }, verdict)
}

impl Change {
    fn new(figure: &Measured, healthy: &Measured) -> Self {
        Self {
            times_healthy: figure.median / healthy.median,
            noise: figure.noise.max(healthy.noise),
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Held => "held",
            Verdict::NotHeld => "NOT held",
            Verdict::TooNoisy => "not decided, the rounds lie too far apart",
        };
        write!(out, "{}: {verdict}: ", self.case)?;
        match &self.finding {
            Finding::Cost {
                times_off,
                least,
                greatest,
            } => write!(
                out,
                "{times_off:.2} × off by CPU time, {least:.2} to {greatest:.2} in single rounds; less than \
                 {MOST_TIMES_OFF} is promised"
            ),
            Finding::Outage { calls_per_s, p99 } => write!(
                out,
                "{:.2} × the calls/s of a collector that answers (noise {}), {:.2} × its p99 (noise {})",
                calls_per_s.times_healthy,
                percent(calls_per_s.noise),
                p99.times_healthy,
                percent(p99.noise)
            ),
        }
    }
}

#[cfg(test)]
mod tests;
