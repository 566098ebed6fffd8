use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::cli;
use crate::engine::call::Echo;
use crate::engine::mix::{Kind, Mix};
use crate::engine::watch::{Reading, Seen};
use crate::engine::{self, Plan, Shared};
use crate::mcp::Mode;
use crate::scenario::{Finished, Scenario};

const QUIET_CORES: f64 = 0.1;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct RunReport {
    pub(crate) url: String,
    pub(crate) mode: Mode,
    pub(crate) sessions: usize,
    pub(crate) seconds: f64,
    /// Calls in the measured time.
    pub(crate) calls: u64,
    pub(crate) calls_per_s: f64,
    /// The time from sending a request to the end of its answer.
    pub(crate) latency: Latency,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redis: Option<RedisUsage>,
    pub(crate) server: Option<ServerUsage>,
    /// Cores that other programs used. If this is well above 0, the figures are unreliable.
    pub(crate) other_cores: Option<f64>,
    /// Includes the warm-up.
    pub(crate) wrong: u64,
    /// Includes the warm-up.
    pub(crate) failed: u64,
    pub(crate) examples: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Latency {
    pub(crate) mean_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p99_9_us: f64,
    pub(crate) max_us: f64,
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            mean_us: histogram.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: histogram.max() as f64 / 1e3,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct ServerUsage {
    pub(crate) cpu_us_per_call: f64,
    /// 1.0 is one busy core.
    pub(crate) cores: f64,
    pub(crate) rss_kib: u64,
    pub(crate) processes: usize,
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

impl Scenario for cli::Run {
    fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        let plan = Plan {
            warmup: self.warmup,
            duration: self.duration,
            mix: Mix::of(Kind::Payload(self.text_bytes)),
            echo: Echo {
                tool: self.tool.clone(),
                argument: self.argument.clone(),
                prefix: self.answer_prefix.clone(),
            },
            pids: self.pids.clone(),
            ..Plan::at(&self.url, self.mode, self.sessions).await?
        };
        engine::run(plan, self.legacy_stateless).await
    }
}

impl RunReport {
    pub(crate) fn of(shared: &Shared, seen: &Seen) -> Self {
        let Seen { first, last, .. } = seen;
        let (plan, target) = (&shared.plan, &shared.plan.targets[0]);
        let (calls, seconds) = (last.calls - first.calls, (last.at - first.at).as_secs_f64());
        let counts = shared.tally.counts();
        let usage = first.usage.as_ref().zip(last.usage.as_ref());
        Self {
            url: format!(
                "http://{}{}",
                target.host.to_str().unwrap_or("?"),
                target.path
            ),
            mode: plan.mode,
            sessions: plan.sessions.most() as usize,
            seconds,
            calls,
            calls_per_s: calls as f64 / seconds,
            latency: Latency::of(&counts.stages[1].from_sent),
            redis: RedisUsage::between(first, last, calls),
            server: usage.map(|((before, _), (after, _))| {
                let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
                ServerUsage {
                    cpu_us_per_call: cpu * 1e6 / calls.max(1) as f64,
                    cores: cpu / seconds,
                    rss_kib: after.rss_kib,
                    processes: after.processes,
                }
            }),
            other_cores: usage.map(|((_, before), (_, after))| {
                after.saturating_sub(*before).as_secs_f64() / seconds
            }),
            wrong: counts.wrong,
            failed: counts.failed + counts.refused,
            examples: counts.examples.clone(),
        }
    }

    pub(crate) fn cpu_us_per_call(&self) -> f64 {
        let server = self.server.as_ref();
        server.map_or(f64::NAN, |server| server.cpu_us_per_call)
    }
}

impl Finished for RunReport {
    fn is_correct(&self) -> bool {
        self.wrong == 0 && self.failed == 0
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latency = &self.latency;
        writeln!(
            out,
            "{} calls in {:.1} s over {} sessions: {:.0} calls/s",
            self.calls, self.seconds, self.sessions, self.calls_per_s
        )?;
        writeln!(
            out,
            "latency µs: mean {:.0}  p50 {:.0}  p90 {:.0}  p99 {:.0}  p99.9 {:.0}  max {:.0}",
            latency.mean_us,
            latency.p50_us,
            latency.p90_us,
            latency.p99_us,
            latency.p99_9_us,
            latency.max_us
        )?;
        if let Some(server) = &self.server {
            writeln!(
                out,
                "server: {:.2} µs of CPU a call, {:.2} cores, {:.1} MiB in {} processes",
                server.cpu_us_per_call,
                server.cores,
                server.rss_kib as f64 / 1024.0,
                server.processes
            )?;
        }
        if let Some(other_cores) = self.other_cores {
            writeln!(out, "other work on the machine: {other_cores:.2} cores")?;
        }
        write!(
            out,
            "wrong answers {}, failed calls {}",
            self.wrong, self.failed
        )?;
        for example in &self.examples {
            write!(out, "\n  {example}")?;
        }
        Ok(())
    }
}

pub(crate) fn write_disturbance(
    out: &mut fmt::Formatter<'_>,
    other_cores: impl Iterator<Item = f64>,
) -> fmt::Result {
    let most = other_cores.fold(0.0, f64::max);
    if most > QUIET_CORES {
        writeln!(
            out,
            "NOT QUIET: other work took up to {most:.2} cores; measure again on a quiet machine"
        )?;
    }
    Ok(())
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
            redis: None,
            url: String::new(),
            mode: Mode::Legacy,
            sessions: 1,
            seconds: 1.0,
            calls: 1,
            calls_per_s: 1.0,
            latency: Latency {
                mean_us: 1.0,
                p50_us: 1.0,
                p90_us: 1.0,
                p99_us: 1.0,
                p99_9_us: 1.0,
                max_us: 1.0,
            },
            server: Some(ServerUsage {
                cpu_us_per_call: cpu_us,
                cores: 1.0,
                rss_kib: 1,
                processes: 1,
            }),
            other_cores: Some(0.0),
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
