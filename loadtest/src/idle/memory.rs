use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::Context;

use crate::process;
use crate::servers::cluster::redis::Redis;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedProcess {
    /// Processes whose names differ only in a trailing number share the streams.
    pub(crate) name: String,
    pub(crate) pid: u32,
}

impl NamedProcess {
    pub(super) fn kind(&self) -> &str {
        match self.name.rsplit_once('-') {
            Some((kind, number)) if number.parse::<u32>().is_ok() => kind,
            _ => &self.name,
        }
    }
}

impl FromStr for NamedProcess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let said = text.split_once('=').unwrap_or(("server", text));
        match (said.0, said.1.parse()) {
            (name, Ok(pid)) if !name.is_empty() => Ok(Self {
                name: name.to_owned(),
                pid,
            }),
            _ => Err(format!("{text} is not NAME=PID, like edge-1=4711")),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) resident: BTreeMap<String, u64>,
    pub(super) redis: Option<u64>,
}

impl Reading {
    pub(super) fn take(processes: &[NamedProcess], redis: Option<&Redis>) -> anyhow::Result<Self> {
        let mut resident = BTreeMap::new();
        for NamedProcess { name, pid } in processes {
            let usage =
                process::measure(&[*pid]).with_context(|| format!("could not read {name}"))?;
            resident.insert(name.clone(), usage.rss_kib);
        }
        Ok(Self {
            resident,
            redis: redis.map(Redis::used_memory).transpose()?,
        })
    }

    pub(super) fn grown_kib(&self, before: &Self, kind: &str, processes: &[NamedProcess]) -> f64 {
        let of_kind = processes.iter().filter(|process| process.kind() == kind);
        let sum = |reading: &Self| -> u64 {
            let known = of_kind
                .clone()
                .filter_map(|process| reading.resident.get(&process.name));
            known.sum()
        };
        sum(self) as f64 - sum(before) as f64
    }

    pub(super) fn redis_grown_kib(&self, before: &Self) -> Option<f64> {
        let (now, then) = self.redis.zip(before.redis)?;
        Some((now as f64 - then as f64) / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{NamedProcess, Reading};

    #[test]
    fn processes_are_named() {
        let named: NamedProcess = "edge-2=17".parse().unwrap();
        assert_eq!(
            (named.name.as_str(), named.kind(), named.pid),
            ("edge-2", "edge", 17)
        );
        let named: NamedProcess = "17".parse().unwrap();
        assert_eq!((named.kind(), named.pid), ("server", 17));
        for wrong in ["edge-1", "=17", "edge=", "edge=-1"] {
            assert!(wrong.parse::<NamedProcess>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn growth_is_that_of_all_processes_of_a_kind() {
        let processes = ["edge-1=1", "edge-2=2", "worker=3"].map(|text| text.parse().unwrap());
        let reading = |one, two| Reading {
            resident: [("edge-1", one), ("edge-2", two), ("worker", 9)]
                .map(|(name, kib)| (name.to_owned(), kib))
                .into(),
            redis: None,
        };
        let grown = |kind| reading(30, 40).grown_kib(&reading(10, 20), kind, &processes);
        assert_eq!((grown("edge"), grown("worker")), (40.0, 0.0));
    }
}
