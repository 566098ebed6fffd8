//! What the server's processes use, each by itself and all together.

use std::time::Duration;

use anyhow::Context;

use crate::process;

/// The processes of the server.
#[derive(Debug, Clone)]
pub(super) struct Servers(Vec<u32>);

/// What they had used at one moment.
#[derive(Debug, Clone)]
pub(super) struct Usage {
    /// Of all, with their descendants.
    pub(super) cpu: Duration,
    /// CPU time of all that is neither server nor generator.
    pub(super) others: Duration,
    /// Of each, with its descendants.
    pub(super) rss_kib: Vec<u64>,
}

impl Usage {
    /// The memory of all together, in KiB.
    pub(super) fn memory_kib(&self) -> u64 {
        self.rss_kib.iter().sum()
    }
}

impl Servers {
    /// The processes `pids`.
    ///
    /// # Errors
    ///
    /// Where one of them is not there.
    pub(super) fn of(pids: &[u32]) -> anyhow::Result<Self> {
        if !pids.is_empty() {
            process::measure(pids).context("could not read a process named with --pid")?;
        }
        Ok(Self(pids.to_vec()))
    }

    pub(super) fn pids(&self) -> &[u32] {
        &self.0
    }

    /// Reads now; `None` where no process is known or one is gone.
    pub(super) fn read(&self) -> Option<Usage> {
        if self.0.is_empty() {
            return None;
        }
        let all = process::measure(&self.0).ok()?;
        let mut with_ours = self.0.clone();
        with_ours.push(std::process::id());
        let with_ours = process::measure(&with_ours).ok()?;
        let machine = process::machine_cpu().ok()?;
        let each = self
            .0
            .iter()
            .map(|pid| process::measure(&[*pid]).map(|usage| usage.rss_kib));
        Some(Usage {
            cpu: all.cpu,
            others: machine.saturating_sub(with_ours.cpu),
            rss_kib: each.collect::<Result<_, _>>().ok()?,
        })
    }
}
