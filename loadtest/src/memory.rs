//! The memory of a server's processes while a scenario runs.

use std::collections::BTreeMap;

use anyhow::Context;
use shoal_testkit::cluster::Cluster;

use crate::outcome::Outcome;
use crate::process;
use crate::servers::redis::used_memory;

pub(crate) const RESIDENT: &str = ": resident memory";

/// KiB by name, such as `edge-1: resident memory` or `redis: used memory`.
pub(crate) type Reading = BTreeMap<String, f64>;

/// The processes to read, by their names. Those of one name count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) processes: Vec<(String, u32)>,
    /// HOST:PORT.
    pub(crate) redis: Option<String>,
}

impl Memory {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let members = cluster.members().iter();
        let members = members.map(|member| (member.name().to_owned(), member.pid()));
        let redis = cluster.redis();
        let process = redis.map(|redis| ("redis".to_owned(), redis.pid()));
        Self {
            processes: members.chain(process).collect(),
            redis: redis.map(|redis| redis.address().to_string()),
        }
    }

    pub(crate) async fn read(&self) -> anyhow::Result<Reading> {
        let mut reading = Reading::new();
        for (name, pid) in &self.processes {
            let usage = process::measure(&[*pid]);
            let kib = usage
                .with_context(|| format!("could not read {name}"))?
                .rss_kib;
            *reading.entry(format!("{name}{RESIDENT}")).or_default() += kib as f64;
        }
        if let Some(redis) = &self.redis {
            let kib = used_memory(redis).await? as f64 / 1024.0;
            reading.insert("redis: used memory".to_owned(), kib);
        }
        Ok(reading)
    }

    /// Adds a point to the series of each process.
    pub(crate) async fn sample(&self, seconds: f64, outcome: &mut Outcome) -> anyhow::Result<()> {
        for (name, kib) in self.read().await? {
            outcome.point(&name, "KiB", (seconds, kib));
        }
        Ok(())
    }
}

/// Parses `NAME=PID`, or a process ID.
pub(crate) fn named(text: &str) -> Result<(String, u32), String> {
    let (name, pid) = text.split_once('=').unwrap_or(("server", text));
    match pid.parse() {
        Ok(pid) if !name.is_empty() => Ok((name.to_owned(), pid)),
        _ => Err(format!("{text} is not NAME=PID, like edge-1=4711")),
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn processes_are_named() {
        assert_eq!(named("edge-2=17"), Ok(("edge-2".to_owned(), 17)));
        assert_eq!(named("17"), Ok(("server".to_owned(), 17)));
        for wrong in ["edge-1", "=17", "edge=", "edge=-1"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
