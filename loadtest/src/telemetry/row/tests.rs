//! Medians, spreads and ratios of made-up rounds.

use super::{Measured, rows};
use crate::report::RunReport;
use crate::telemetry::case::CASES;
use crate::telemetry::turn::{Spans, Turn};

fn turn(cpu_us: f64, lost: Option<u64>) -> Turn {
    Turn {
        report: RunReport::made_up(cpu_us),
        spans: Spans { received: 5, lost },
    }
}

#[test]
fn noise_is_the_spread_between_rounds_over_their_median() {
    let measured = Measured::of(vec![110.0, 90.0, 100.0]);
    assert_eq!((measured.median, measured.noise), (100.0, 0.2));
    assert_eq!(Measured::of(vec![7.0, 7.0]).noise, 0.0);
}

#[test]
fn each_deployment_is_compared_with_its_own_case_without_telemetry() {
    let cpu_us = |name| match name {
        "off" => 10.0,
        "metrics" => 11.0,
        "cluster off" => 100.0,
        "cluster traces 10 %" => 130.0,
        _ => 20.0,
    };
    let turns: Vec<Vec<Turn>> = (CASES.iter())
        .map(|case| vec![turn(cpu_us(case.name), None); 2])
        .collect();
    let rows = rows(&turns);
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.case == name).unwrap();
        row.times_off.as_ref().unwrap().median
    };
    assert_eq!((of("off"), of("metrics")), (1.0, 1.1));
    assert_eq!((of("cluster off"), of("cluster traces 10 %")), (1.0, 1.3));
}

#[test]
fn each_round_is_compared_with_the_same_round() {
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); CASES.len()];
    // The machine was slow in the second round, and slower yet in the third.
    turns[0] = [10.0, 20.0, 40.0].map(|cpu_us| turn(cpu_us, None)).to_vec();
    turns[1] = [11.0, 24.0, 44.0].map(|cpu_us| turn(cpu_us, None)).to_vec();
    let times_off = rows(&turns)[1].times_off.clone().unwrap();
    assert_eq!(times_off.rounds, [1.1, 1.2, 1.1]);
    assert_eq!(times_off.median, 1.1);
}

#[test]
fn a_case_without_rounds_has_no_row_and_spans_are_added_up() {
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); CASES.len()];
    turns[1] = vec![turn(1.0, Some(3)), turn(1.0, Some(4))];
    turns[2] = vec![turn(1.0, Some(3)), turn(1.0, None)];
    let rows = rows(&turns);
    let spans: Vec<_> = (rows.iter())
        .map(|row| (row.case, row.spans_received, row.spans_lost))
        .collect();
    assert_eq!(
        spans,
        [(CASES[1].name, 10, Some(7)), (CASES[2].name, 10, None)]
    );
}
