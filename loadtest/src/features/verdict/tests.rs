use super::{Verdict, judge};
use crate::features::case::{Case, Part};
use crate::features::cases;
use crate::features::row::rows;
use crate::features::turn::{Spans, Turn};
use crate::mcp::Mode;
use crate::report::RunReport;

/// One round: CPU time per call, calls per second, and p99.
type Round = (f64, f64, f64);

const ROUND: Round = (1.0, 100.0, 100.0);

fn turn((cpu_us, calls_per_s, p99_us): Round) -> Turn {
    let mut report = RunReport::made_up(cpu_us);
    report.calls_per_s = calls_per_s;
    report.latency.p99_us = p99_us;
    Turn {
        report,
        spans: Spans::default(),
    }
}

fn verdict(part: Part, its: &[Round], others: &[Round]) -> Verdict {
    let cases = cases::telemetry(Mode::Legacy, true);
    let case = cases.iter().find(|case| case.part == part).unwrap();
    let rounds = |it: &Case| match it.name == case.name {
        true => its,
        false => others,
    };
    let turns: Vec<Vec<Turn>> = (cases.iter())
        .map(|case| rounds(case).iter().copied().map(turn).collect())
        .collect();
    let judgements = judge(&rows(&cases, &turns));
    let judged = judgements.iter().find(|it| it.case == case.name);
    judged.unwrap().verdict
}

#[test]
fn what_sampling_costs_is_judged_by_cpu_time_alone() {
    for (round, due) in [
        ((1.0, 100.0, 100.0), Verdict::Held),
        // Throughput and latency do not count, because the collector shares the generator's core.
        ((1.149, 50.0, 300.0), Verdict::Held),
        ((1.15, 100.0, 100.0), Verdict::NotHeld),
        ((f64::NAN, 100.0, 100.0), Verdict::NotHeld),
    ] {
        assert_eq!(
            verdict(Part::Sampled, &[round; 3], &[ROUND; 3]),
            due,
            "{round:?}"
        );
    }
}

#[test]
fn rounds_on_both_sides_of_the_limit_leave_the_cost_open() {
    let rounds = [1.1, 1.2, 1.1].map(|cpu_us| (cpu_us, 100.0, 100.0));
    assert_eq!(
        verdict(Part::Sampled, &rounds, &[ROUND; 3]),
        Verdict::TooNoisy
    );
}

#[test]
fn enough_rounds_on_one_side_of_the_limit_decide() {
    let judged = |below: usize, above: usize| {
        let rounds = std::iter::repeat_n(1.1, below).chain(std::iter::repeat_n(1.2, above));
        let rounds: Vec<Round> = rounds.map(|cpu_us| (cpu_us, 100.0, 100.0)).collect();
        verdict(Part::Sampled, &rounds, &vec![ROUND; rounds.len()])
    };
    // The probability of at least 7 heads in 8 tosses is 3.5%, of 6 heads in 7 tosses 6.3%, and of
    // 15 heads in 20 tosses 2.1%.
    for (below, above, due) in [
        (7, 1, Verdict::Held),
        (6, 1, Verdict::TooNoisy),
        (15, 5, Verdict::Held),
        (14, 6, Verdict::TooNoisy),
        (10, 10, Verdict::TooNoisy),
        (1, 7, Verdict::NotHeld),
        (5, 15, Verdict::NotHeld),
    ] {
        assert_eq!(judged(below, above), due, "{below} {above}");
    }
}

#[test]
fn an_outage_may_change_no_more_than_rounds_differ_by() {
    let healthy = [(1.0, 90.0, 95.0), ROUND, (1.0, 100.0, 105.0)];
    for (round, due) in [
        ((9.0, 100.0, 100.0), Verdict::Held),
        ((1.0, 91.0, 109.0), Verdict::Held),
        ((1.0, 200.0, 50.0), Verdict::Held),
        ((1.0, 89.0, 100.0), Verdict::NotHeld),
        ((1.0, 100.0, 111.0), Verdict::NotHeld),
    ] {
        assert_eq!(
            verdict(Part::Outage, &[round; 3], &healthy),
            due,
            "{round:?}"
        );
    }
}

#[test]
fn rounds_that_lie_far_apart_show_a_disaster_but_no_peace() {
    let wild = [ROUND, (1.0, 70.0, 100.0), (1.0, 130.0, 100.0)];
    assert_eq!(verdict(Part::Outage, &wild, &[ROUND; 3]), Verdict::TooNoisy);
    assert_eq!(
        verdict(Part::Outage, &[(1.0, 10.0, 100.0); 3], &wild),
        Verdict::NotHeld
    );
}

#[test]
fn what_it_would_be_compared_with_must_be_there() {
    let cases = cases::telemetry(Mode::Legacy, true);
    let turns: Vec<Vec<Turn>> = (cases.iter())
        .map(|case| match case.part {
            Part::Off => Vec::new(),
            _ => vec![turn(ROUND); 2],
        })
        .collect();
    let judgements = judge(&rows(&cases, &turns));
    let judged: Vec<_> = judgements.iter().map(|it| it.case).collect();
    assert_eq!(judged, ["10 %, collector stopped", "10 %, collector hangs"]);
}
