use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Engine;
use super::pacer::Pacer;
use crate::outcome::{Outcome, Series};
use crate::servers::redis;
use crate::{process, times};

const PERIOD: Duration = Duration::from_secs(1);

const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Figures of shorter periods say nothing.
const LEAST_S: f64 = 0.05;

/// The measurements of a run.
pub(crate) struct Seen {
    pub(crate) series: Vec<Series>,
    /// At the beginning of the measurement.
    pub(crate) first: Reading,
    pub(crate) last: Reading,
}

/// The load and its server at a moment.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) calls: u64,
    /// The server's processes and the CPU time of other programs; `None` if the processes are unknown or have ended.
    pub(crate) usage: Option<(process::Usage, Duration)>,
    pub(crate) redis: Option<(Duration, BTreeMap<String, u64>)>,
}

impl Engine {
    /// Leads the clients through the stages.
    pub(crate) async fn watch(&self) -> anyhow::Result<Seen> {
        let plan = &self.shared.plan;
        let calls = || self.shared.tally.counts().calls;
        let mut seen = Outcome::default();
        let mut first = self.reading(true).await?;
        let mut last = first.clone();
        let mut late = Duration::ZERO;
        for index in 0..self.stages.all.len() {
            self.stages.current.send_replace(index);
            // A warm-up of a slow server has a call of each session.
            let enough = match index {
                0 => (plan.least_calls > 0).then_some(plan.sessions.most() as u64),
                1 => {
                    first = self.reading(true).await?;
                    Some(first.calls + plan.least_calls)
                }
                _ => None,
            };
            let end = self.stages.end_of(index) + late;
            loop {
                let now = Instant::now();
                let mut left = end.saturating_duration_since(now);
                if left.is_zero() && enough.is_some_and(|enough| calls() < enough) {
                    left = (end + LONGEST_WAIT).saturating_duration_since(now);
                }
                if left.is_zero() {
                    late += now - end;
                    break;
                }
                sleep(left.min(PERIOD)).await;
                let reading = self.reading(false).await?;
                if (reading.at - last.at).as_secs_f64() > LEAST_S {
                    self.look(index, &last, &reading, &mut seen);
                    last = reading;
                }
            }
        }
        let last = self.reading(true).await?;
        self.stages.current.send_replace(self.stages.all.len());
        let mut series = seen.series;
        series.retain(|series: &Series| series.points.iter().any(|(_, value)| *value != 0.0));
        Ok(Seen {
            series,
            first,
            last,
        })
    }

    /// Reading the processes disturbs a load, so that `run` does it only before and after.
    async fn reading(&self, is_border: bool) -> anyhow::Result<Reading> {
        let plan = &self.shared.plan;
        let calls = self.shared.tally.counts().calls;
        let read = !plan.pids.is_empty() && (is_border || plan.by_second);
        let usage = read.then(|| process::measure_beside(&plan.pids).ok());
        let redis = match plan.redis.filter(|_| is_border) {
            Some(at) => Some((redis::cpu(at).await?, redis::commands(at).await?)),
            None => None,
        };
        Ok(Reading {
            at: Instant::now(),
            calls,
            usage: usage.flatten(),
            redis,
        })
    }

    fn look(&self, stage: usize, last: &Reading, now: &Reading, seen: &mut Outcome) {
        let (name, label) = (&self.stages.all[stage].name, &self.shared.plan.label);
        let name = if stage == 0 { "warm-up" } else { name };
        let behind = self.pacer.as_deref().map_or(0, Pacer::behind);
        let (p50, p99, outstanding, failed, refused) = {
            let mut counts = self.shared.tally.counts();
            let [p50, p99] = [0.5, 0.99].map(|at| times::quantile_ms(&counts.window, at));
            counts.window.reset();
            let failed = self.shared.tally.findings.count();
            (p50, p99, counts.in_flight + behind, failed, counts.refused)
        };
        let seconds = (now.at - last.at).as_secs_f64();
        let calls = now.calls - last.calls;
        let (since, rate) = (
            (now.at - self.stages.began).as_secs_f64(),
            calls as f64 / seconds,
        );
        crate::progress(&format!(
            "{label}{since:>5.0} s  {name}: {rate:>7.0} calls/s  p50 {p50:>8.2} ms  p99 {p99:>8.2} ms  \
             {failed} wrong or missing  {refused} refused  {outstanding} outstanding, {behind} of them behind schedule"
        ));
        let mut values = vec![
            ("throughput", "calls/s", rate),
            ("latency p50, by second", "ms", p50),
            ("latency p99, by second", "ms", p99),
            ("outstanding calls", "calls", outstanding as f64),
            ("calls behind schedule", "calls", behind as f64),
            ("answers wrong or missing, so far", "calls", failed as f64),
        ];
        if let (Some((now, _)), Some((last, _))) = (&now.usage, &last.usage) {
            let cpu_us = now.cpu.saturating_sub(last.cpu).as_secs_f64() * 1e6;
            let per_call = cpu_us / calls.max(1) as f64;
            values.push(("server CPU per call, by second", "µs", per_call));
            let mib = now.rss_kib as f64 / 1024.0;
            values.push(("server's resident memory", "MiB", mib));
        }
        for (name, unit, value) in values {
            seen.point(name, unit, (since, value));
        }
    }
}
