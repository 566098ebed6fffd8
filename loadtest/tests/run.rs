//! The closed loop against this program's own servers.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

mod common;

use std::process::{Command, Output};

use common::{LOADTEST, Server, figure, run, said};

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
    let (ran, result) = run(&mut drive(&server, "legacy"), "floor");
    assert!(ran.status.success(), "{}", said(&ran));
    assert!(figure(&result, "calls answered") > 0.0);
    assert!(figure(&result, "server CPU per call") > 0.0);
    assert!(figure(&result, "server memory at the end") > 0.0);
    let latency = &result["latencies"][0]["quantiles_us"][6];
    assert!(latency[1].as_f64().unwrap() > 0.0, "{latency}");
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
