//! A short measurement of features on Shoal itself. Build the server first, so that it is next to
//! the load tool: `cargo build -p shoal-node --bin shoal`.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

mod common;

use std::process::Command;

use common::{LOADTEST, run, said, shoal};

fn features(only: &str) -> Command {
    let mut command = Command::new(LOADTEST);
    command
        .args(["features", "--only", only, "--shoal"])
        .arg(shoal())
        .args(["--sessions", "4", "--warmup", "100ms", "--seconds", "1"]);
    command
}

#[test]
fn each_feature_is_measured_in_both_eras_beside_none() {
    let mut command = features("validation,one of 1000 tokens,metrics");
    let (ran, result) = run(command.args(["--rounds", "2"]), "features");
    assert!(ran.status.success(), "{}", said(&ran));
    let rows = result["rows"].as_array().unwrap();
    let named: Vec<String> = (rows.iter())
        .map(|row| {
            format!(
                "{} {}",
                row["mode"].as_str().unwrap(),
                row["case"].as_str().unwrap()
            )
        })
        .collect();
    let mut due = Vec::new();
    for mode in ["legacy", "modern"] {
        let cases = ["off", "validation", "one of 1000 tokens", "metrics"];
        due.extend(cases.map(|case| format!("{mode} {case}")));
    }
    assert_eq!(named, due);
    for row in rows {
        assert!(
            row["cpu_us_per_call"]["median"].as_f64().unwrap() > 0.0,
            "{row}"
        );
        assert!(
            row["calls_per_s"]["median"].as_f64().unwrap() > 0.0,
            "{row}"
        );
        let rounds = row["times_off"]["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2, "{row}");
        assert_eq!(
            (&row["wrong"], &row["failed"]),
            (&0.into(), &0.into()),
            "{row}"
        );
    }
}

#[test]
fn a_case_that_there_is_not_is_refused_with_those_that_there_are() {
    let ran = features("authentification").output().unwrap();
    assert!(!ran.status.success());
    let said = said(&ran);
    assert!(
        said.contains("authentification") && said.contains("authentication, "),
        "{said}"
    );
}
