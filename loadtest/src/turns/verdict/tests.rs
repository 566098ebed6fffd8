use std::collections::BTreeMap;

use super::{Bar, verdicts};
use crate::mcp::Mode::Legacy;
use crate::report::{RedisUsage, RunReport};
use crate::turns::row::tests::rows_of;

/// One round: CPU time per call, calls per second, and p99.
type Round = (f64, f64, f64);

const ROUND: Round = (1.0, 100.0, 100.0);

const BARS: &[(&str, Bar)] = &[
    ("shoal", Bar::TimesBase(1.5)),
    ("shoal, 10 events", Bar::TimesBase(1.8)),
    ("shoal", Bar::TimesFewer(2.0, &["rmcp", "rmcp JSON"])),
];

/// With three rounds, one outlier does not change the median.
fn judged(cpu_us: &[(&str, &str, f64)]) -> Vec<(String, Option<bool>)> {
    let rounds = |cpu_us: f64| [cpu_us, 1000.0, cpu_us].map(RunReport::made_up).to_vec();
    let cases = cpu_us.iter();
    let cases = cases.map(|(name, base, cpu_us)| (*name, *base, Legacy, rounds(*cpu_us)));
    let verdicts = verdicts(&rows_of(&cases.collect::<Vec<_>>()), BARS).into_iter();
    verdicts
        .map(|verdict| (verdict.what, verdict.held))
        .collect()
}

#[test]
fn the_figure_is_in_the_verdict_and_decides_it() {
    for (cpu_us, what, held) in [(15.0, "1.50", true), (15.1, "1.51", false)] {
        let verdicts = judged(&[("floor", "floor", 10.0), ("shoal", "floor", cpu_us)]);
        let what = format!("shoal {what} × floor: at most 1.5 ×");
        assert_eq!(verdicts, [(what, Some(held))]);
    }
}

#[test]
fn each_kind_of_work_has_a_floor_of_its_own() {
    let verdicts = judged(&[
        ("floor", "floor", 10.0),
        ("floor, 10 events", "floor, 10 events", 20.0),
        ("shoal, 10 events", "floor, 10 events", 36.0),
    ]);
    let what = "shoal, 10 events 1.80 × floor: at most 1.8 ×".to_owned();
    assert_eq!(verdicts, [(what, Some(true))]);
}

#[test]
fn the_cheapest_of_the_others_counts() {
    let held = |json| {
        let verdicts = judged(&[
            ("floor", "floor", 10.0),
            ("rmcp", "floor", 42.0),
            ("rmcp JSON", "floor", json),
            ("shoal", "floor", 15.0),
        ]);
        verdicts.last().cloned().unwrap()
    };
    let what = "shoal 15.00 µs, 2.0 × fewer than rmcp JSON: at least 2 ×".to_owned();
    assert_eq!(held(30.0), (what, Some(true)));
    assert_eq!(held(29.0).1, Some(false));
    assert!(judged(&[("floor", "floor", 10.0), ("rmcp", "floor", 33.0)]).is_empty());
}

#[test]
fn what_redis_takes_is_asked_besides() {
    for (redis_us, held) in [(20.0, true), (20.1, false)] {
        let mut report = RunReport::made_up(10.0);
        report.redis = Some(RedisUsage {
            cpu_us_per_call: redis_us,
            commands: BTreeMap::new(),
        });
        let rows = rows_of(&[("cluster", "floor", Legacy, vec![report])]);
        let verdicts = verdicts(&rows, &[("cluster", Bar::Redis(20.0))]);
        let what = format!("cluster {redis_us:.2} µs of Redis: at most 20 µs");
        assert_eq!((&verdicts[0].what, verdicts[0].held), (&what, Some(held)));
    }
}

fn report((cpu_us, calls_per_s, p99_us): Round) -> RunReport {
    let mut report = RunReport::made_up(cpu_us);
    report.calls_per_s = calls_per_s;
    report.p99_us = p99_us;
    report
}

fn held(bar: Bar, its: &[Round], others: &[Round]) -> Option<bool> {
    let reports = |rounds: &[Round]| rounds.iter().copied().map(report).collect();
    let rows = rows_of(&[
        ("off", "off", Legacy, reports(others)),
        ("it", "off", Legacy, reports(its)),
    ]);
    verdicts(&rows, &[("it", bar)])[0].held
}

#[test]
fn what_sampling_costs_is_judged_by_cpu_time_alone() {
    for (round, due) in [
        ((1.0, 100.0, 100.0), true),
        // Throughput and latency do not count, because the collector shares the generator's core.
        ((1.149, 50.0, 300.0), true),
        ((1.15, 100.0, 100.0), false),
        ((f64::NAN, 100.0, 100.0), false),
    ] {
        let held = held(Bar::EachRound(1.15), &[round; 3], &[ROUND; 3]);
        assert_eq!(held, Some(due), "{round:?}");
    }
}

#[test]
fn enough_rounds_on_one_side_of_the_limit_decide() {
    // The probability of at least 7 heads in 8 tosses is 3.5%, of 6 heads in 7 tosses 6.3%, and of
    // 15 heads in 20 tosses 2.1%.
    for (below, above, due) in [
        (2, 1, None),
        (7, 1, Some(true)),
        (6, 1, None),
        (15, 5, Some(true)),
        (14, 6, None),
        (10, 10, None),
        (1, 7, Some(false)),
        (5, 15, Some(false)),
    ] {
        let rounds = std::iter::repeat_n(1.1, below).chain(std::iter::repeat_n(1.2, above));
        let rounds: Vec<Round> = rounds.map(|cpu_us| (cpu_us, 100.0, 100.0)).collect();
        let held = held(Bar::EachRound(1.15), &rounds, &vec![ROUND; rounds.len()]);
        assert_eq!(held, due, "{below} {above}");
    }
}

#[test]
fn an_outage_may_change_no_more_than_rounds_differ_by() {
    let healthy = [(1.0, 90.0, 95.0), ROUND, (1.0, 100.0, 105.0)];
    for (round, due) in [
        ((9.0, 100.0, 100.0), true),
        ((1.0, 91.0, 109.0), true),
        ((1.0, 200.0, 50.0), true),
        ((1.0, 89.0, 100.0), false),
        ((1.0, 100.0, 111.0), false),
    ] {
        let held = held(Bar::AsGoodAs("off"), &[round; 3], &healthy);
        assert_eq!(held, Some(due), "{round:?}");
    }
}

#[test]
fn rounds_that_lie_far_apart_show_a_disaster_but_no_peace() {
    let wild = [ROUND, (1.0, 70.0, 100.0), (1.0, 130.0, 100.0)];
    let bar = Bar::AsGoodAs("off");
    assert_eq!(held(bar, &wild, &[ROUND; 3]), None);
    assert_eq!(held(bar, &[(1.0, 10.0, 100.0); 3], &wild), Some(false));
}
