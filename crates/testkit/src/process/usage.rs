//! CPU time and memory of processes, from `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// `USER_HZ`, which is the same for all of Linux.
const TICKS_PER_SECOND: u32 = 100;

/// The processor time and memory of some processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time. Includes reaped children, so that a child that ends between two readings counts.
    pub cpu: Duration,
    /// Resident memory.
    pub rss_kib: u64,
    /// The number of processes.
    pub processes: usize,
}

/// Kills a process with all its descendants, because a worker gives each stdio server its own process group.
pub(super) fn kill_family(pid: u32) {
    // Before the kill, because afterwards the children have another parent.
    let descendants = processes().map(|table| family(&[pid], &table));
    for pid in std::iter::once(pid).chain(descendants.into_iter().flatten()) {
        if let Ok(pid) = i32::try_from(pid) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Sums over `roots` and all their descendants.
pub fn measure(roots: &[u32]) -> anyhow::Result<Usage> {
    let table = processes()?;
    let mut usage = Usage::default();
    for pid in family(roots, &table) {
        let Some(stat) = table.get(&pid) else {
            anyhow::bail!("process {pid} is gone");
        };
        usage.cpu += stat.cpu();
        usage.rss_kib += resident_kib(pid);
        usage.processes += 1;
    }
    Ok(usage)
}

/// Measures `roots`. Also returns the CPU time of all programs except them and this one.
pub fn measure_beside(roots: &[u32]) -> anyhow::Result<(Usage, Duration)> {
    let usage = measure(roots)?;
    let with_ours = measure(&[roots, &[std::process::id()]].concat())?;
    Ok((usage, machine_cpu()?.saturating_sub(with_ours.cpu)))
}

/// Returns the peak of a process's resident memory.
pub fn peak_rss_kib(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("could not read the status of process {pid}"))?;
    parse_kib(&status, "VmHWM:").with_context(|| format!("no peak memory of process {pid}"))
}

fn machine_cpu() -> anyhow::Result<Duration> {
    let stat = fs::read_to_string("/proc/stat").context("could not read /proc/stat")?;
    let ticks = parse_machine(&stat).context("could not understand /proc/stat")?;
    Ok(Duration::from_secs(ticks) / TICKS_PER_SECOND)
}

/// Sums the busy ticks: user, nice, system, irq and softirq.
fn parse_machine(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = fields
        .split_ascii_whitespace()
        .map(|field| field.parse().ok())
        .collect::<Option<_>>()?;
    let (programs, interrupts) = (fields.get(..3)?, fields.get(5..7)?);
    Some(programs.iter().chain(interrupts).sum())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    ticks: u64,
}

impl Stat {
    fn cpu(&self) -> Duration {
        Duration::from_secs(self.ticks) / TICKS_PER_SECOND
    }
}

fn processes() -> anyhow::Result<HashMap<u32, Stat>> {
    let mut table = HashMap::new();
    for entry in fs::read_dir("/proc").context("could not list /proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(stat) = parse_stat(&stat) {
            table.insert(pid, stat);
        }
    }
    Ok(table)
}

/// The program's name may contain blanks and parentheses.
fn parse_stat(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().try_fold(0, |sum: u64, field| {
        // cutime and cstime have a signed format, but are non-negative.
        let ticks: i64 = field.parse().ok()?;
        Some(sum + u64::try_from(ticks).ok()?)
    })?;
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        ticks,
    })
}

fn family(roots: &[u32], table: &HashMap<u32, Stat>) -> HashSet<u32> {
    let mut members: HashSet<u32> = roots.iter().copied().collect();
    loop {
        let before = members.len();
        members.extend(
            table
                .iter()
                .filter(|(_, stat)| members.contains(&stat.parent))
                .map(|(&pid, _)| pid)
                .collect::<Vec<_>>(),
        );
        if members.len() == before {
            return members;
        }
    }
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    parse_kib(&status, "VmRSS:").unwrap_or(0)
}

fn parse_kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
