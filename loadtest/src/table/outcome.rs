use super::row::Row;
use super::{Options, bar};
use crate::outcome::{Better, Outcome, Violation};

pub(super) fn of(mut outcome: Outcome, rows: &[Row], options: &Options) -> Outcome {
    let parameters = [
        ("sessions", options.sessions.to_string()),
        ("seconds", options.duration.as_secs().to_string()),
        ("warmup", format!("{}ms", options.warmup.as_millis())),
        ("rounds", options.rounds.to_string()),
        ("peers", options.peers.names()),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
    outcome.parameters.extend(parameters);
    outcome.seconds = options.duration.as_secs_f64();
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
            outcome.figure(figure, redis.cpu_us_per_call, "µs", Better::Lower);
        }
        if row.calls == 0 {
            outcome.violations.push(Violation {
                what: format!("{}: no answers", row.case),
                count: 1,
                example: "not one call was answered while it was measured".to_owned(),
            });
        }
        for (what, count) in [("wrong answers", row.wrong), ("failed calls", row.failed)] {
            if count > 0 {
                outcome.violations.push(Violation {
                    what: format!("{}: {what}", row.case),
                    count,
                    example: row.examples.first().cloned().unwrap_or_default(),
                });
            }
        }
    }
    outcome.verdicts = bar::verdicts(rows);
    outcome
}
