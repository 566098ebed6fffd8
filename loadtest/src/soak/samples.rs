use std::collections::BTreeMap;

use anyhow::Context;

use super::slope::Slope;
use crate::outcome::Outcome;
use crate::process;
use crate::servers::cluster::Cluster;
use crate::servers::cluster::member::Role;

/// Marks Redis keys that belong to the processes themselves.
const OF_NODES: &str = "{nodes}";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) keys: usize,
    pub(super) sessions: u64,
    pub(super) streams: u64,
    pub(super) calls: u64,
}

impl Held {
    pub(super) fn read(cluster: &Cluster) -> anyhow::Result<Self> {
        let keys = cluster.redis.keys("*")?;
        let mut held = Self {
            keys: keys.iter().filter(|key| !key.contains(OF_NODES)).count(),
            sessions: 0,
            streams: 0,
            calls: 0,
        };
        let number = |value: &serde_json::Value| value.as_u64().context("a gauge is missing");
        for node in cluster.of(Role::Session) {
            let status = node.status()?;
            let sessions = &status["sessions"];
            held.sessions += number(&sessions["live"])? + number(&sessions["passive"])?;
            held.streams += number(&sessions["streams"])?;
            held.calls += number(&sessions["in_flight"])?;
        }
        for edge in cluster.of(Role::Edge) {
            held.streams += number(&edge.status()?["edge"]["streams"])?;
        }
        Ok(held)
    }

    pub(super) fn is_nothing(self) -> bool {
        self.keys == 0 && self.sessions == 0 && self.streams == 0 && self.calls == 0
    }
}

#[derive(Debug, Default)]
pub(super) struct Samples {
    memory: BTreeMap<String, Vec<(f64, f64)>>,
    held: BTreeMap<&'static str, Vec<(f64, f64)>>,
}

impl Samples {
    pub(super) fn take(&mut self, cluster: &Cluster, seconds: f64) -> anyhow::Result<Held> {
        for member in &cluster.members {
            let kib = member.rss_kib()?;
            self.remember(&member.name, seconds, kib as f64);
        }
        let redis = process::measure(&[cluster.redis_pid()])?.rss_kib;
        self.remember("redis", seconds, redis as f64);
        let held = Held::read(cluster)?;
        let bytes = cluster.redis.used_memory()?;
        for (name, value) in [
            ("keys in Redis", held.keys as f64),
            ("KiB of data in Redis", bytes as f64 / 1024.0),
            ("sessions held", held.sessions as f64),
            ("streams open", held.streams as f64),
        ] {
            self.held.entry(name).or_default().push((seconds, value));
        }
        Ok(held)
    }

    fn remember(&mut self, process: &str, seconds: f64, kib: f64) {
        let points = self.memory.entry(process.to_owned()).or_default();
        points.push((seconds, kib));
    }

    pub(super) fn latest_mib(&self) -> f64 {
        let last = self.memory.values().filter_map(|points| points.last());
        last.map(|point| point.1).sum::<f64>() / 1024.0
    }

    pub(super) fn conclude(self, outcome: &mut Outcome) {
        for (process, points) in self.memory {
            let last = points.last().map_or(0.0, |point| point.1);
            outcome.lower(
                format!("{process}: resident memory at the end"),
                last,
                "KiB",
            );
            judge(&process, Slope::settled(&points), outcome);
            outcome.series(format!("{process}: resident memory"), "KiB", points);
        }
        for (name, points) in self.held {
            outcome.series(name, "", points);
        }
    }
}

fn judge(process: &str, slope: Option<Slope>, outcome: &mut Outcome) {
    let asked = "of the last two thirds, indistinguishable from 0 or falling";
    let Some(slope) = slope else {
        let what = format!("{process}: slope of memory {asked}: too few readings");
        return outcome.verdict(what, None);
    };
    let [median, low, high] = [slope.median, slope.low, slope.high].map(|slope| slope * 3_600.0);
    outcome.lower(format!("{process}: slope of memory"), median, "KiB/h");
    outcome.verdict(
        format!(
            "{process}: slope of memory {median:+.0} KiB/h (95 %: {low:+.0} to {high:+.0}) {asked}"
        ),
        !slope.grows(),
    );
}
