use serde_json::Value;

use crate::outcome::{Better, Outcome, Violation};

/// Member, label, unit and better direction.
const COLUMNS: [(&str, &str, &str, Better); 6] = [
    (
        "times_floor",
        "CPU per call over the floor's",
        "×",
        Better::Lower,
    ),
    ("cpu_us_per_call", "CPU per call", "µs", Better::Lower),
    ("p50_us", "p50", "µs", Better::Lower),
    ("p99_us", "p99", "µs", Better::Lower),
    ("calls_per_s", "calls a second", "1/s", Better::Higher),
    ("rss_kib", "memory", "KiB", Better::Lower),
];

pub(super) fn outcome(value: &Value) -> Option<Outcome> {
    let rows = value.get("rows")?.as_array()?;
    let rounds = value.get("rounds")?.as_u64()?;
    let sessions = value.get("sessions")?.as_u64()?;
    let title = format!("medians of {rounds} rounds at {sessions} sessions");
    let mut outcome = Outcome::begin("table", title);
    // The table does not record when it was measured.
    outcome.started_unix_s = 0;
    outcome.seconds = value.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
    for row in rows {
        let case = row.get("case")?.as_str()?;
        for (member, what, unit, better) in COLUMNS {
            if let Some(number) = row.get(member).and_then(Value::as_f64) {
                outcome.figure(format!("{case}: {what}"), number, unit, better);
            }
        }
        for (member, what) in [("wrong", "wrong answer"), ("failed", "no answer")] {
            let count = row.get(member).and_then(Value::as_u64).unwrap_or(0);
            if count > 0 {
                let example = row.pointer("/examples/0").and_then(Value::as_str);
                outcome.violations.push(Violation {
                    what: format!("{what}: {case}"),
                    count,
                    example: example.unwrap_or("not kept").to_owned(),
                });
            }
        }
    }
    Some(outcome)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::outcome;

    #[test]
    fn each_row_of_a_table_becomes_figures_and_its_wrong_answers_violations() {
        let rows = json!([
            {"case": "floor", "cpu_us_per_call": 20.0, "times_floor": 1.0, "wrong": 0, "failed": 0},
            {"case": "shoal", "cpu_us_per_call": 30.0, "times_floor": 1.5, "wrong": 2, "failed": 0, "examples": ["5 for 4"]},
        ]);
        let table = json!({"sessions": 64, "seconds": 10.0, "rounds": 3, "rows": rows});
        let outcome = outcome(&table).expect("is a table");
        let figure = outcome
            .figures
            .iter()
            .find(|figure| figure.name == "shoal: CPU per call");
        assert_eq!(figure.map(|figure| figure.value), Some(30.0));
        assert_eq!(outcome.violations.len(), 1);
        assert_eq!(outcome.violations[0].example, "5 for 4");
    }

    #[test]
    fn what_is_no_table_becomes_nothing() {
        assert!(outcome(&json!({"calls": 1})).is_none());
    }
}
