use std::collections::BTreeMap;
use std::fmt;

use super::row::Row;
use crate::report::{RedisUsage, RunReport, median};

pub(super) fn of(rounds: &[RunReport]) -> Option<RedisUsage> {
    let usages = || rounds.iter().filter_map(|report| report.redis.as_ref());
    usages().next()?;
    let mut commands = BTreeMap::new();
    for (name, count) in usages().flat_map(|usage| &usage.commands) {
        *commands.entry(name.clone()).or_default() += count;
    }
    Some(RedisUsage {
        cpu_us_per_call: median(usages().map(|usage| usage.cpu_us_per_call)),
        commands,
    })
}

/// The commands include those for leases and the list of nodes.
pub(super) fn write(out: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    for row in rows {
        let Some(redis) = &row.redis else { continue };
        let all: u64 = redis.commands.values().sum();
        let by_name = redis.commands.iter();
        let by_name: Vec<String> = by_name
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        writeln!(
            out,
            "Redis, {}: {:.2} µs of CPU a call, {all} commands for {} calls ({:.4} a call): {}",
            row.case,
            redis.cpu_us_per_call,
            row.calls,
            all as f64 / row.calls.max(1) as f64,
            by_name.join(", ")
        )?;
    }
    Ok(())
}
