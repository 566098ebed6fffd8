//! A short measurement of features on Shoal itself. Build the server first, so that it is next to
//! the load tool: `cargo build -p shoal-node --bin shoal`.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

use std::process::{Command, Output};

use serde_json::Value;

mod shoal_binary;

const LOADTEST: &str = env!("CARGO_BIN_EXE_loadtest");

fn features(more: &[&str]) -> Output {
    Command::new(LOADTEST)
        .arg("features")
        .arg("--shoal")
        .arg(shoal_binary::shoal(LOADTEST))
        .args(["--sessions", "4", "--warmup", "100ms", "--seconds", "1"])
        .args(more)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn each_feature_is_measured_in_both_eras_beside_none() {
    let file = std::env::temp_dir().join(format!("loadtest-features-{}.json", std::process::id()));
    let ran = features(&[
        "--rounds",
        "2",
        "--only",
        "validation,one of 1000 tokens,metrics",
        "--json",
        file.to_str().unwrap(),
    ]);
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    let result: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
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
    let ran = features(&["--only", "authentification"]);
    assert!(!ran.status.success());
    let err = text(&ran.stderr);
    assert!(
        err.contains("authentification") && err.contains("authentication, "),
        "{err}"
    );
}
