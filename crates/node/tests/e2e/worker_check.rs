use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::command::output;
use crate::process::shoal;

/// Some checks take many seconds.
const LONG: Duration = Duration::from_secs(180);

const OWN: [&str; 9] = [
    "serve",
    "--roles",
    "worker",
    "--demo",
    "--join",
    "{address}",
    "--admin",
    "127.0.0.1:0",
    "--listen=127.0.0.1:0",
];

#[tokio::test]
async fn shoals_own_worker_keeps_the_contract() {
    let check = ["worker-check", "--output", "json", "--timeout", "30s", "--"];
    let words = [&check[..], &[env!("CARGO_BIN_EXE_shoal")], &OWN].concat();
    let checked = timeout(LONG, shoal(&words).output()).await;
    let checked = checked.unwrap().unwrap();
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let not_passed = |check: &&Value| check["outcome"] != "passed";
    let checks = report["checks"].as_array().unwrap();
    let others: Vec<&Value> = checks.iter().filter(not_passed).collect();
    assert!(others.is_empty(), "{others:#?}");
    assert_eq!(checked.status.code(), Some(0));
    assert_eq!(report["passed"], checks.len());
}

#[tokio::test]
async fn a_program_that_is_no_worker_is_told_from_one() {
    let ends = output(&["worker-check", "--", "true"], "").await;
    assert_eq!(ends.code, 4, "{}", ends.stderr);
    assert!(ends.stderr.contains("it ended"), "{}", ends.stderr);
    let missing = output(&["worker-check", "--", "no-such-program-here"], "").await;
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    let never = output(&["worker-check", "--timeout", "50ms"], "").await;
    assert_eq!(never.code, 4, "{}", never.stderr);
    let unknown = output(&["worker-check", "--only", "hello,nonsense"], "").await;
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("nonsense") && unknown.stderr.contains("question"));
}
