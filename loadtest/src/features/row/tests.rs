use super::{Measured, rows};
use crate::features::case::Case;
use crate::features::cases;
use crate::features::turn::{Spans, Turn};
use crate::mcp::Mode;
use crate::report::RunReport;

fn cases() -> Vec<Case> {
    cases::telemetry(Mode::Legacy, true)
}

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
    let turns: Vec<Vec<Turn>> = (cases().iter())
        .map(|case| vec![turn(cpu_us(case.name), None); 2])
        .collect();
    let rows = rows(&cases(), &turns);
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.case == name).unwrap();
        row.times_off.as_ref().unwrap().median
    };
    assert_eq!((of("off"), of("metrics")), (1.0, 1.1));
    assert_eq!((of("cluster off"), of("cluster traces 10 %")), (1.0, 1.3));
}

#[test]
fn each_era_is_compared_with_its_own() {
    let cases = cases::features(&[Mode::Legacy, Mode::Modern]);
    let cpu_us = |case: &Case| match (case.mode, case.name) {
        (Mode::Legacy, "off") => 10.0,
        (Mode::Legacy, _) => 12.0,
        (Mode::Modern, "off") => 20.0,
        (Mode::Modern, _) => 21.0,
    };
    let turns: Vec<Vec<Turn>> = (cases.iter())
        .map(|case| vec![turn(cpu_us(case), None); 2])
        .collect();
    for row in rows(&cases, &turns) {
        let due = match (row.mode, row.case) {
            (_, "off") => 0.0,
            (Mode::Legacy, _) => 2.0,
            (Mode::Modern, _) => 1.0,
        };
        assert_eq!(row.more_us, Some(due), "{:?} {}", row.mode, row.case);
    }
}

#[test]
fn each_round_is_compared_with_the_same_round() {
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); cases().len()];
    turns[0] = [10.0, 20.0, 40.0].map(|cpu_us| turn(cpu_us, None)).to_vec();
    turns[1] = [11.0, 24.0, 44.0].map(|cpu_us| turn(cpu_us, None)).to_vec();
    let row = rows(&cases(), &turns)[1].clone();
    let times_off = row.times_off.unwrap();
    assert_eq!(times_off.rounds, [1.1, 1.2, 1.1]);
    assert_eq!(times_off.median, 1.1);
    assert_eq!(row.more_us, Some(4.0));
}

#[test]
fn a_case_without_rounds_has_no_row_and_spans_are_added_up() {
    let cases = cases();
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); cases.len()];
    turns[1] = vec![turn(1.0, Some(3)), turn(1.0, Some(4))];
    turns[2] = vec![turn(1.0, Some(3)), turn(1.0, None)];
    let rows = rows(&cases, &turns);
    let spans: Vec<_> = (rows.iter())
        .map(|row| (row.case, row.spans_received, row.spans_lost))
        .collect();
    assert_eq!(
        spans,
        [(cases[1].name, 10, Some(7)), (cases[2].name, 10, None)]
    );
}
