//! The bar, judged over made-up rounds.

use super::{bar, rows};
use crate::mcp::Mode;
use crate::report::{Latency, RunReport, ServerUsage};
use crate::table::case::CASES;

/// One round of a case that cost `cpu_us` a call.
fn round(cpu_us: f64) -> RunReport {
    RunReport {
        redis_commands: std::collections::BTreeMap::new(),
        url: String::new(),
        mode: Mode::Legacy,
        sessions: 1,
        seconds: 1.0,
        calls: 1,
        calls_per_s: 1.0,
        latency: Latency {
            mean_us: 1.0,
            p50_us: 1.0,
            p90_us: 1.0,
            p99_us: 1.0,
            p99_9_us: 1.0,
            max_us: 1.0,
        },
        server: Some(ServerUsage {
            cpu_us_per_call: cpu_us,
            cores: 1.0,
            rss_kib: 1,
            processes: 1,
        }),
        other_cores: Some(0.0),
        wrong: 0,
        failed: 0,
        examples: Vec::new(),
    }
}

/// Three rounds of each case, in the order of [`CASES`] and without the last ones, which are not judged; 0
/// leaves a case out.
fn judged(cpu_us: [f64; 8]) -> Option<bool> {
    assert!(cpu_us.len() <= CASES.len());
    let reports = cpu_us.map(|cpu_us| match cpu_us {
        0.0 => Vec::new(),
        // The median is not moved by one outlier.
        cpu_us => vec![round(cpu_us), round(1000.0), round(cpu_us)],
    });
    bar(&rows(&reports)).map(|bar| bar.held)
}

#[test]
fn the_bar_holds_within_both_limits() {
    assert_eq!(
        judged([10.0, 33.0, 29.0, 42.0, 33.0, 20.0, 15.0, 99.0]),
        Some(true)
    );
}

#[test]
fn more_than_twice_the_floor_breaks_the_bar() {
    assert_eq!(
        judged([10.0, 33.0, 29.0, 42.0, 33.0, 20.1, 15.0, 99.0]),
        Some(false)
    );
}

#[test]
fn the_cheaper_of_the_peers_modern_modes_counts() {
    assert_eq!(
        judged([10.0, 33.0, 29.0, 42.0, 14.0, 20.0, 15.0, 99.0]),
        Some(false)
    );
}

#[test]
fn a_mode_that_only_the_peer_has_does_not_count() {
    assert_eq!(
        judged([10.0, 33.0, 5.0, 42.0, 33.0, 20.0, 15.0, 0.0]),
        Some(true)
    );
}

#[test]
fn without_shoal_there_is_no_verdict() {
    assert_eq!(judged([10.0, 33.0, 29.0, 42.0, 33.0, 0.0, 0.0, 0.0]), None);
}
