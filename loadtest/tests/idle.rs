//! Small idle crowds against this program's floor and against Shoal.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

mod common;

use std::io::{BufRead, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use common::{LOADTEST, Server, figure, run, shoal};
use serde_json::Value;

fn idle() -> Command {
    let mut command = Command::new(LOADTEST);
    command.args(["idle", "--settle", "100ms", "--callers", "4"]);
    command
}

fn good(ran: &Output, outcome: &Value) {
    assert!(ran.status.success(), "{outcome:#}");
    assert_eq!(outcome["violations"].as_array().unwrap().len(), 0);
    assert!(figure(outcome, "calls answered rightly") > 0.0);
    let calls = &outcome["latencies"][0];
    assert!(
        calls["quantiles_us"][2][1].as_f64().unwrap() > 0.0,
        "{calls:#}"
    );
}

#[test]
fn streams_of_the_floor_are_held_and_measured() {
    let floor = Server::own(&["serve-floor"]);
    let mut command = idle();
    command
        .args(["--url", &floor.url, "--streams", "60", "--hold", "1s"])
        .args(["--rate", "50", "--pid"])
        .arg(format!("edge-1={}", floor.child.id()));
    let (ran, outcome) = run(&mut command, "floor");
    good(&ran, &outcome);
    assert_eq!(figure(&outcome, "streams open when settled"), 60.0);
    assert!(figure(&outcome, "edge-1: resident memory before") > 0.0);
    let open = &outcome["series"][0]["points"];
    assert!(
        open.as_array()
            .unwrap()
            .iter()
            .all(|point| point[1] == 60.0)
    );
}

#[test]
fn a_server_of_this_program_ends_with_whoever_started_it() {
    let mut server = Command::new(LOADTEST)
        .args(["serve-floor", "--while-input"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    assert!(server.try_wait().unwrap().is_none());
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

#[test]
fn keep_alives_that_do_not_come_fail_the_run() {
    let floor = Server::own(&["serve-floor"]);
    let mut command = idle();
    command
        .args(["--url", &floor.url, "--streams", "5", "--rate", "0"])
        .args(["--keep-alive", "300ms", "--hold", "3s"]);
    let (ran, outcome) = run(&mut command, "silent");
    assert!(!ran.status.success());
    let what = &outcome["violations"][0]["what"];
    assert_eq!(what, "keep-alives missed", "{outcome:#}");
}

#[test]
fn streams_that_are_dropped_fail_the_run() {
    let mut floor = Server::own(&["serve-floor"]);
    let mut running = idle()
        .args(["--url", &floor.url, "--streams", "20", "--rate", "0"])
        .args(["--hold", "3s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("holding: 20 streams")));
    floor.kill();
    lines.for_each(drop);
    let mut said = String::new();
    let mut output = running.stdout.take().unwrap();
    output.read_to_string(&mut said).unwrap();
    assert!(!running.wait().unwrap().success());
    assert!(
        said.contains("VIOLATION streams that were dropped: 20"),
        "{said}"
    );
}

#[test]
fn one_process_of_shoal_holds_a_crowd_of_each_era() {
    for mode in ["legacy", "modern"] {
        let mut command = idle();
        command.arg("--shoal").arg(shoal());
        command
            .args(["--mode", mode, "--streams", "40", "--hold", "1s"])
            .args(["--rate", "50"]);
        let (ran, outcome) = run(&mut command, mode);
        good(&ran, &outcome);
        assert_eq!(figure(&outcome, "streams open when settled"), 40.0);
        assert!(figure(&outcome, "shoal: resident memory settled") > 0.0);
    }
}

#[test]
fn a_cluster_of_shoal_holds_a_crowd_beside_bare_sessions() {
    let found = Command::new("redis-server").arg("--version").output();
    if found.is_err() {
        return;
    }
    let mut command = idle();
    command.arg("--shoal").arg(shoal());
    command
        .args(["--cluster", "--floor", "--streams", "40", "--hold", "1s"])
        .args(["--rate", "50", "--bare-sessions", "30"]);
    let (ran, outcome) = run(&mut command, "cluster");
    good(&ran, &outcome);
    assert!(figure(&outcome, "edge-2: resident memory settled") > 0.0);
    assert!(figure(&outcome, "redis: resident memory settled") > 0.0);
    // Redis' own connections hide the memory of so few sessions.
    figure(&outcome, "redis: used memory a session without a stream");
    assert!(
        outcome["verdicts"].as_array().unwrap().len() >= 4,
        "{outcome:#}"
    );
}
