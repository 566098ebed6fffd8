//! The closed loop against this program's own servers.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

mod common;

use std::process::{Command, Output};

use common::{LOADTEST, Server, run, said};

fn drive(server: &Server, mode: &str) -> Command {
    let mut command = Command::new(LOADTEST);
    command
        .args(["run", "--url", &server.url, "--mode", mode])
        .args([
            "--sessions",
            "4",
            "--warmup",
            "200ms",
            "--duration",
            "800ms",
        ])
        .args(["--pid", &server.child.id().to_string()]);
    command
}

fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

#[test]
fn the_floor_answers_every_call_and_the_report_says_so() {
    let server = Server::own(&["serve-floor"]);
    let (ran, report) = run(drive(&server, "legacy").arg("--legacy-stateless"), "floor");
    assert!(ran.status.success(), "{}", said(&ran));
    assert!(report["calls"].as_u64().unwrap() > 0);
    assert!(report["latency"]["p99_us"].as_f64().unwrap() > 0.0);
    assert!(report["server"]["rss_kib"].as_u64().unwrap() > 0);
    assert_eq!(
        (report["wrong"].as_u64(), report["failed"].as_u64()),
        (Some(0), Some(0))
    );
}

#[test]
fn the_peer_answers_in_every_mode() {
    for configured in [["true", "false"], ["false", "true"], ["false", "false"]] {
        let [stateful, json] = configured;
        let server = Server::own(&["serve-rmcp", "--stateful", stateful, "--json", json]);
        for mode in ["legacy", "modern"] {
            let ran = output(drive(&server, mode));
            let said = said(&ran);
            assert!(ran.status.success(), "{mode} {configured:?}: {said}");
        }
    }
}

#[test]
fn answers_that_are_not_the_expected_ones_fail_the_run() {
    let server = Server::own(&["serve-floor"]);
    let mut command = drive(&server, "legacy");
    command.args(["--answer-prefix", "Echo: "]);
    let ran = output(command);
    assert!(!ran.status.success() && said(&ran).contains("not the text"));
}

#[test]
fn a_session_where_none_may_be_fails_the_run() {
    let server = Server::own(&["serve-rmcp"]);
    let mut command = drive(&server, "legacy");
    command.arg("--legacy-stateless");
    let ran = output(command);
    assert!(!ran.status.success() && said(&ran).contains("keeps sessions"));
}
