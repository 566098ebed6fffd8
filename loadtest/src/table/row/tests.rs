//! The bar, judged over made-up rounds.

use super::{bar, rows};
use crate::report::RunReport;
use crate::table::case::CASES;

/// Three rounds of each case, in the order of [`CASES`] and without the last ones, which are not judged; 0
/// leaves a case out.
fn judged(cpu_us: [f64; 8]) -> Option<bool> {
    assert!(cpu_us.len() <= CASES.len());
    let reports = cpu_us.map(|cpu_us| match cpu_us {
        0.0 => Vec::new(),
        // The median is not moved by one outlier.
        cpu_us => [cpu_us, 1000.0, cpu_us].map(RunReport::made_up).to_vec(),
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
