//! What Redis had to do for a cluster's calls.

use std::collections::BTreeMap;
use std::fmt;

use super::row::Row;
use crate::report::RunReport;

/// The commands carried out between two looks.
pub(super) fn since(before: &[(String, u64)], after: &[(String, u64)]) -> BTreeMap<String, u64> {
    let earlier = |name: &str| {
        let known = before.iter().find(|(known, _)| known == name);
        known.map_or(0, |(_, count)| *count)
    };
    after
        .iter()
        .map(|(name, count)| (name.clone(), count.saturating_sub(earlier(name))))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The commands of all rounds.
pub(super) fn sum(rounds: &[RunReport]) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (name, count) in rounds.iter().flat_map(|report| &report.redis_commands) {
        *sum.entry(name.clone()).or_default() += count;
    }
    sum
}

/// Writes how many commands the cluster's rows took; opening and ending the sessions, leases and the list
/// of nodes are among them.
pub(super) fn write(out: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    for row in rows.iter().filter(|row| !row.redis_commands.is_empty()) {
        let all: u64 = row.redis_commands.values().sum();
        let by_name: Vec<String> = row
            .redis_commands
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        writeln!(
            out,
            "Redis, {}: {all} commands for {} calls ({:.4} a call): {}",
            row.case,
            row.calls,
            all as f64 / row.calls.max(1) as f64,
            by_name.join(", ")
        )?;
    }
    Ok(())
}
