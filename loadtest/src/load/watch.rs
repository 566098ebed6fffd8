use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use super::pacer::Pacer;
use super::stage::Stages;
use super::tally::Tally;
use super::usage::{Servers, Usage};
use crate::outcome::Series;
use crate::times;

const PERIOD: Duration = Duration::from_secs(1);

const LEAST_S: f64 = 0.05;

const SERIES: [(&str, &str); 6] = [
    ("throughput", "calls/s"),
    ("latency p50, by second", "ms"),
    ("latency p99, by second", "ms"),
    ("outstanding calls", "calls"),
    ("calls behind schedule", "calls"),
    ("answers wrong or missing, so far", "calls"),
];

pub(super) struct Watch<'a> {
    pub(super) tally: &'a Tally,
    pub(super) stages: &'a Stages,
    pub(super) pacer: Option<&'a Pacer>,
    pub(super) servers: &'a Servers,
}

pub(super) struct Seen {
    pub(super) series: Vec<Series>,
    pub(super) measured: (Reading, Reading),
}

#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) calls: u64,
    /// `None` if a process is unknown or has ended.
    pub(super) usage: Option<Usage>,
}

impl Watch<'_> {
    pub(super) async fn run(&self) -> Seen {
        let mut series: Vec<Series> = SERIES
            .iter()
            .map(|(name, unit)| empty(name, unit))
            .collect();
        let mut cpu = empty("server CPU per call, by second", "µs");
        let mut memory: Vec<Series> = self
            .servers
            .pids()
            .iter()
            .map(|pid| empty(&format!("resident memory of process {pid}"), "MiB"))
            .collect();
        let measured_from = self.stages.starts(1);
        let mut last = self.read();
        let mut first = None;
        let mut next = self.stages.began;
        while next < self.stages.end() {
            let border = if first.is_none() {
                measured_from
            } else {
                self.stages.end()
            };
            next = (next + PERIOD).min(border.max(next)).min(self.stages.end());
            if next > Instant::now() {
                sleep_until(next.into()).await;
            }
            let reading = self.read();
            let elapsed = (reading.at - last.at).as_secs_f64();
            if elapsed > LEAST_S {
                let at = (reading.at - self.stages.began).as_secs_f64();
                let rate = (reading.calls - last.calls) as f64 / elapsed;
                let values = self.look(rate, last.at);
                for (series, value) in series.iter_mut().zip(values) {
                    series.points.push((at, value));
                }
                if let (Some(now), Some(before)) = (&reading.usage, &last.usage) {
                    let calls = (reading.calls - last.calls).max(1) as f64;
                    let used = now.cpu.saturating_sub(before.cpu).as_secs_f64();
                    cpu.points.push((at, used * 1e6 / calls));
                    for (series, kib) in memory.iter_mut().zip(&now.rss_kib) {
                        series.points.push((at, *kib as f64 / 1024.0));
                    }
                }
            }
            if first.is_none() && next >= measured_from {
                first = Some(reading.clone());
            }
            last = reading;
        }
        series.push(cpu);
        series.extend(memory);
        series.retain(|series| series.points.iter().any(|(_, value)| *value != 0.0));
        let first = first.unwrap_or_else(|| last.clone());
        Seen {
            series,
            measured: (first, last),
        }
    }

    fn read(&self) -> Reading {
        Reading {
            at: Instant::now(),
            calls: self.tally.counts().calls,
            usage: self.servers.read(),
        }
    }

    fn look(&self, rate: f64, from: Instant) -> [f64; 6] {
        let behind = self.pacer.map_or(0, Pacer::behind);
        let faults = self.tally.findings.count();
        let (window, in_flight, refused) = {
            let mut counts = self.tally.counts();
            (counts.take_window(), counts.in_flight, counts.refused)
        };
        let now = Instant::now();
        let index = self.stages.at(from).unwrap_or(self.stages.all.len() - 1);
        let since = (now - self.stages.began).as_secs_f64();
        let (name, outstanding) = (&self.stages.all[index].name, in_flight + behind);
        let [p50, p99] = [0.5, 0.99].map(|at| times::quantile_ms(&window, at));
        crate::progress(&format!(
            "{since:>5.0} s  {name}: {rate:>7.0} calls/s  p50 {p50:>8.2} ms  p99 {p99:>8.2} ms  \
             {faults} wrong or missing  {refused} refused  {outstanding} outstanding, {behind} of them behind schedule"
        ));
        let (outstanding, behind) = (outstanding as f64, behind as f64);
        [rate, p50, p99, outstanding, behind, faults as f64]
    }
}

fn empty(name: &str, unit: &str) -> Series {
    Series {
        name: name.to_owned(),
        unit: unit.to_owned(),
        points: Vec::new(),
    }
}
