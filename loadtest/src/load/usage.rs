use std::time::Duration;

use anyhow::Context;

use crate::process;

#[derive(Debug, Clone)]
pub(super) struct Servers(Vec<u32>);

#[derive(Debug, Clone)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    pub(super) others: Duration,
    /// One entry for each process with its descendants.
    pub(super) rss_kib: Vec<u64>,
}

impl Usage {
    pub(super) fn memory_kib(&self) -> u64 {
        self.rss_kib.iter().sum()
    }
}

impl Servers {
    pub(super) fn of(pids: &[u32]) -> anyhow::Result<Self> {
        if !pids.is_empty() {
            process::measure(pids).context("could not read a process named with --pid")?;
        }
        Ok(Self(pids.to_vec()))
    }

    pub(super) fn pids(&self) -> &[u32] {
        &self.0
    }

    /// `None` if a process is unknown or has ended.
    pub(super) fn read(&self) -> Option<Usage> {
        if self.0.is_empty() {
            return None;
        }
        let (all, others) = process::measure_beside(&self.0).ok()?;
        let each = self.0.iter().map(|pid| process::measure(&[*pid]));
        let each = each.map(|usage| usage.map(|usage| usage.rss_kib));
        Some(Usage {
            cpu: all.cpu,
            others,
            rss_kib: each.collect::<Result<_, _>>().ok()?,
        })
    }
}
