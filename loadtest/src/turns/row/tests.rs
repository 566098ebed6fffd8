use super::{Measured, Row, rows};
use crate::engine::mix::Kind;
use crate::mcp::Mode::{self, Legacy, Modern};
use crate::report::RunReport;
use crate::turns::setup::Features;
use crate::turns::{Case, Server, Turn};

pub(crate) fn turn(report: RunReport, spans_lost: Option<u64>) -> Turn {
    Turn {
        report,
        spans_received: 5,
        spans_lost,
    }
}

fn case(name: &str, base: &str, mode: Mode) -> Case {
    Case {
        name: name.to_owned(),
        base: base.to_owned(),
        mode,
        server: Server::Shoal,
        kind: Kind::Echo,
        tool: "echo",
        features: Features::NONE,
    }
}

/// Each case has a name, a base, and reports.
pub(crate) fn rows_of(cases: &[(&str, &str, Mode, Vec<RunReport>)]) -> Vec<Row> {
    let turns = |reports: &[RunReport]| {
        let reports = reports.iter().cloned();
        reports.map(|report| Some(turn(report, None))).collect()
    };
    let turns: Vec<_> = cases.iter().map(|(.., reports)| turns(reports)).collect();
    let cases = cases.iter();
    let cases: Vec<Case> = cases
        .map(|(name, base, mode, _)| case(name, base, *mode))
        .collect();
    rows(&cases, &turns)
}

fn reports<const N: usize>(cpu_us: [f64; N]) -> Vec<RunReport> {
    cpu_us.map(RunReport::made_up).to_vec()
}

#[test]
fn noise_is_the_spread_between_rounds_over_their_median() {
    let measured = Measured::of([110.0, 90.0, 100.0].into_iter());
    assert_eq!((measured.median, measured.noise), (100.0, 0.2));
    assert_eq!(Measured::of([7.0, 7.0].into_iter()).noise, 0.0);
}

#[test]
fn each_case_is_compared_with_its_base_and_the_one_of_its_era_if_there_is_one() {
    let rows = rows_of(&[
        ("off", "off", Legacy, reports([10.0, 10.0])),
        ("on", "off", Legacy, reports([12.0, 12.0])),
        ("off", "off", Modern, reports([20.0, 20.0])),
        ("on", "off", Modern, reports([21.0, 21.0])),
        (
            "cluster off",
            "cluster off",
            Legacy,
            reports([100.0, 100.0]),
        ),
        ("cluster on", "cluster off", Modern, reports([130.0, 130.0])),
    ]);
    let more: Vec<_> = rows.iter().map(|row| row.more_us.unwrap()).collect();
    assert_eq!(more, [0.0, 2.0, 0.0, 1.0, 0.0, 30.0]);
    let labels: Vec<_> = rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels[2..5], ["modern off", "modern on", "cluster off"]);
}

#[test]
fn each_round_is_compared_with_the_same_round() {
    let rows = rows_of(&[
        ("off", "off", Legacy, reports([10.0, 20.0, 40.0])),
        ("on", "off", Legacy, reports([11.0, 24.0, 44.0])),
    ]);
    let times = rows[1].times_base.as_ref().unwrap();
    assert_eq!(
        (times.median, &times.rounds[..]),
        (1.1, &[1.1, 1.2, 1.1][..])
    );
    assert_eq!(rows[1].more_us, Some(4.0));
}

#[test]
fn a_case_without_rounds_has_no_row_and_spans_are_added_up() {
    let turn = |lost| Some(turn(RunReport::made_up(1.0), lost));
    let cases = ["off", "a", "b"].map(|name| case(name, "off", Legacy));
    let turns = [
        vec![None, None],
        vec![turn(Some(3)), turn(Some(4))],
        vec![turn(Some(3)), turn(None)],
    ];
    let rows = rows(&cases, &turns);
    let spans = rows.iter();
    let spans = spans.map(|row| (&row.case[..], row.spans_received, row.spans_lost));
    let spans: Vec<_> = spans.collect();
    assert_eq!(spans, [("a", 10, Some(7)), ("b", 10, None)]);
    assert!(rows.iter().all(|row| row.times_base.is_none()));
}
