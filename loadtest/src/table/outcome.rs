use super::row::Row;
use super::{Options, bar};
use crate::outcome::{Better, Outcome};

pub(super) fn of(mut outcome: Outcome, rows: &[Row], options: &Options) -> Outcome {
    let turns = &options.turns;
    outcome.parameters(&[
        ("sessions", &turns.sessions),
        ("seconds", &turns.seconds),
        ("warmup", &format!("{}ms", turns.warmup.as_millis())),
        ("rounds", &turns.rounds),
        ("peers", &options.peers.names()),
    ]);
    outcome.seconds = turns.time().as_secs_f64();
    for row in rows {
        let figures = [
            ("CPU a call", row.cpu_us_per_call, "µs", Better::Lower),
            ("CPU over the floor", row.times_floor, "×", Better::Lower),
            ("latency p50", row.p50_us, "µs", Better::Lower),
            ("latency p99", row.p99_us, "µs", Better::Lower),
            ("throughput", row.calls_per_s, "1/s", Better::Higher),
            (
                "resident memory",
                row.rss_kib / 1024.0,
                "MiB",
                Better::Lower,
            ),
        ];
        for (what, value, unit, better) in figures {
            if value.is_finite() {
                outcome.figure(format!("{}: {what}", row.case), value, unit, better);
            }
        }
        if let Some(redis) = &row.redis {
            let figure = format!("{}: CPU of Redis a call", row.case);
            outcome.lower(figure, redis.cpu_us_per_call, "µs");
        }
        let (case, silent) = (row.case, u64::from(row.calls == 0));
        let example = "not one call was answered while it was measured";
        outcome.violation(format!("{case}: no answers"), silent, example);
        let example = row.examples.first().map_or("", String::as_str);
        outcome.violation(format!("{case}: wrong answers"), row.wrong, example);
        outcome.violation(format!("{case}: failed calls"), row.failed, example);
    }
    outcome.verdicts = bar::verdicts(rows);
    outcome
}
