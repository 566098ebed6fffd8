use super::row::Row;
use crate::outcome::Verdict;

#[derive(Debug, Clone, Copy)]
enum Limit {
    /// CPU time, as a ratio to that of the floor with the same work.
    TimesFloor(f64),
    /// CPU-microseconds of Redis per call.
    Redis(f64),
    /// Minimum ratio of CPU times: the cheapest of these rows to this row.
    TimesFewer(f64, &'static [&'static str]),
}

use Limit::{Redis, TimesFewer, TimesFloor};

const GATEWAYS_LEGACY: &[&str] = &["FastMCP proxy, legacy"];
const GATEWAYS_MODERN: &[&str] = &["FastMCP proxy, modern"];

const BARS: &[(&str, Limit)] = &[
    ("shoal legacy", TimesFloor(1.5)),
    ("shoal modern", TimesFloor(1.5)),
    ("shoal legacy journaled", TimesFloor(2.3)),
    ("cluster legacy", TimesFloor(4.2)),
    ("cluster modern", TimesFloor(4.2)),
    ("cluster journaled", TimesFloor(5.5)),
    ("combined legacy", TimesFloor(3.5)),
    ("cluster, 20 ms tool", TimesFloor(9.0)),
    ("cluster, 20 ms tool", Redis(20.0)),
    ("shoal, 10 events", TimesFloor(1.8)),
    ("shoal, 10 in 10 ms", TimesFloor(1.8)),
    ("shoal legacy", TimesFewer(2.0, &["rmcp stateful"])),
    (
        "shoal modern",
        TimesFewer(2.0, &["rmcp modern", "rmcp modern JSON"]),
    ),
    ("shoal legacy", TimesFewer(12.0, &["TypeScript 1 stateful"])),
    ("shoal modern", TimesFewer(12.0, &["TypeScript 2 modern"])),
    // The cheaper of the two peers counts, although one keeps no session.
    (
        "shoal legacy",
        TimesFewer(70.0, &["FastMCP stateful", "FastMCP stateless JSON"]),
    ),
    ("shoal modern", TimesFewer(70.0, &["FastMCP modern"])),
    ("cluster legacy", TimesFewer(5.0, GATEWAYS_LEGACY)),
    ("cluster modern", TimesFewer(5.0, GATEWAYS_MODERN)),
];

/// Skips limits without a measured row or reference.
pub(super) fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let row = |name: &str| rows.iter().find(|row| row.case == name);
    let judged = BARS.iter().filter_map(|(case, limit)| {
        let shoal = row(case)?;
        let cpu_us = shoal.cpu_us_per_call;
        let is_sound = |row: &Row| row.calls > 0 && row.wrong + row.failed == 0;
        let (what, held) = match limit {
            TimesFloor(most) => {
                let times = shoal.times_floor;
                (
                    format!("{case} {times:.2} × floor: at most {most} ×"),
                    is_sound(shoal).then_some(times <= *most),
                )
            }
            Redis(most) => {
                let cpu_us = shoal.redis.as_ref()?.cpu_us_per_call;
                (
                    format!("{case} {cpu_us:.2} µs of Redis: at most {most} µs"),
                    is_sound(shoal).then_some(cpu_us <= *most),
                )
            }
            TimesFewer(least, others) => {
                let others = others.iter().filter_map(|name| row(name));
                let cheapest =
                    others.min_by(|a, b| a.cpu_us_per_call.total_cmp(&b.cpu_us_per_call))?;
                let times = cheapest.cpu_us_per_call / cpu_us;
                (
                    format!(
                        "{case} {cpu_us:.2} µs, {times:.1} × fewer than {}: at least {least} ×",
                        cheapest.case
                    ),
                    // The CPU time of failed calls would count for the others.
                    (is_sound(shoal) && is_sound(cheapest)).then_some(times >= *least),
                )
            }
        };
        Some(Verdict { what, held })
    });
    judged.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{BARS, Limit, verdicts};
    use crate::peers::PEERS;
    use crate::report::{RedisUsage, RunReport};
    use crate::table::case::cases;
    use crate::table::row::rows;

    /// With three rounds, one outlier does not change the median.
    fn judged(cpu_us: &[(&str, f64)]) -> Vec<(String, Option<bool>)> {
        let cases = cases(&PEERS.iter().collect::<Vec<_>>());
        let reports: Vec<_> = cases
            .iter()
            .map(
                |case| match cpu_us.iter().find(|(name, _)| *name == case.name) {
                    Some((_, cpu_us)) => {
                        [*cpu_us, 1000.0, *cpu_us].map(RunReport::made_up).to_vec()
                    }
                    None => Vec::new(),
                },
            )
            .collect();
        let verdicts = verdicts(&rows(&cases, &reports)).into_iter();
        verdicts
            .map(|verdict| (verdict.what, verdict.held))
            .collect()
    }

    #[test]
    fn every_row_that_is_asked_for_exists() {
        let cases = cases(&PEERS.iter().collect::<Vec<_>>());
        for (case, limit) in BARS {
            let others = match limit {
                Limit::TimesFloor(_) | Limit::Redis(_) => &[][..],
                Limit::TimesFewer(_, others) => others,
            };
            for name in others.iter().chain([case]) {
                assert!(cases.iter().any(|case| case.name == *name), "{name}");
            }
        }
    }

    #[test]
    fn the_figure_is_in_the_verdict_and_decides_it() {
        let verdicts = judged(&[
            ("floor", 10.0),
            ("shoal legacy", 15.0),
            ("shoal modern", 15.1),
        ]);
        assert_eq!(
            verdicts,
            [
                (
                    "shoal legacy 1.50 × floor: at most 1.5 ×".to_owned(),
                    Some(true)
                ),
                (
                    "shoal modern 1.51 × floor: at most 1.5 ×".to_owned(),
                    Some(false)
                ),
            ]
        );
    }

    #[test]
    fn what_redis_takes_is_asked_besides() {
        let cases = cases(&[]);
        let told = |redis_us: f64| {
            let reports: Vec<_> = cases
                .iter()
                .map(|case| {
                    let mut report = RunReport::made_up(10.0);
                    report.redis = Some(RedisUsage {
                        cpu_us_per_call: redis_us,
                        commands: BTreeMap::new(),
                    });
                    match case.name {
                        "floor" | "cluster, 20 ms tool" => vec![report],
                        _ => Vec::new(),
                    }
                })
                .collect();
            let verdict = verdicts(&rows(&cases, &reports)).pop();
            verdict.map(|verdict| (verdict.what, verdict.held))
        };
        let what = |figure| format!("cluster, 20 ms tool {figure} µs of Redis: at most 20 µs");
        assert_eq!(told(20.0), Some((what("20.00"), Some(true))));
        assert_eq!(told(20.1), Some((what("20.10"), Some(false))));
    }

    #[test]
    fn each_kind_of_work_has_a_floor_of_its_own() {
        let verdicts = judged(&[
            ("floor", 10.0),
            ("floor, 10 events", 20.0),
            ("shoal, 10 events", 36.0),
        ]);
        assert_eq!(
            verdicts,
            [(
                "shoal, 10 events 1.80 × floor: at most 1.8 ×".to_owned(),
                Some(true)
            )]
        );
    }

    #[test]
    fn the_cheapest_of_the_others_counts() {
        let held = |json| {
            let verdicts = judged(&[
                ("floor", 10.0),
                ("rmcp modern", 42.0),
                ("rmcp modern JSON", json),
                ("shoal modern", 15.0),
            ]);
            verdicts.last().cloned()
        };
        assert_eq!(
            held(30.0),
            Some((
                "shoal modern 15.00 µs, 2.0 × fewer than rmcp modern JSON: at least 2 ×".to_owned(),
                Some(true)
            ))
        );
        assert_eq!(held(29.0).map(|(_, held)| held), Some(Some(false)));
    }

    #[test]
    fn without_shoal_nothing_is_asked() {
        assert!(judged(&[("floor", 10.0), ("rmcp stateful", 33.0)]).is_empty());
    }
}
