//! Failures, churn and large bodies in small numbers: checks the verification and the verdicts
//! instead of figures.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

mod common;

use std::process::Command;

use common::{LOADTEST, figure, said, shoal, verdict};
use serde_json::Value;

/// Runs a command of `loadtest`, given as words.
fn run(words: &str) -> Value {
    let name = words.replace(|it: char| !it.is_ascii_alphanumeric(), "");
    let mut command = Command::new(LOADTEST);
    command
        .args(words.split_whitespace())
        .arg("--shoal")
        .arg(shoal());
    let (ran, outcome) = common::run(&mut command, &name);
    assert!(ran.status.success(), "{}", said(&ran));
    outcome
}

#[test]
fn overload_is_refused_and_what_can_be_done_is_done() {
    let outcome = run("overload --places 2 --service 50ms --times 3 --warmup 1s --duration 3s");
    assert!(figure(&outcome, "goodput, share of the capacity") > 0.0);
    assert!(figure(&outcome, "calls done") > 0.0);
    assert!(figure(&outcome, "calls refused") > 0.0);
    assert!(verdict(&outcome, "p99 of a refusal").is_some());
    assert_eq!(
        verdict(&outcome, "0 refusals without Retry-After"),
        Some(true)
    );
}

#[test]
fn calls_outlive_their_session_node_and_each_is_executed_once() {
    let outcome = run(
        "failover --kill session --calls 12 --steady 4 --steady-rate 20 --before 1s --after 8s --interval 200ms --lease 1s",
    );
    assert_eq!(figure(&outcome, "calls in flight at the kill"), 12.0);
    assert_eq!(figure(&outcome, "executions of the calls in flight"), 12.0);
    assert!(figure(&outcome, "sessions held by the killed node") > 0.0);
    // A call is on time if its next message is due after the take-over.
    assert!(figure(&outcome, "pause p99") >= 0.0);
    assert!(figure(&outcome, "steady calls answered") > 0.0);
    assert!(verdict(&outcome, "p99 of the pause").is_some());
}

#[test]
fn streams_of_a_killed_edge_come_back_and_miss_nothing() {
    let outcome = run(
        "failover --kill edge --streams 20 --steady 4 --steady-rate 20 --before 1s --after 15s",
    );
    assert_eq!(figure(&outcome, "streams resumed"), 20.0);
    assert_eq!(
        figure(&outcome, "streams told of a change that they missed"),
        20.0
    );
    assert_eq!(verdict(&outcome, "20 of 20 streams resumed"), Some(true));
    // So few streams return within a moment, in which other clients may make no call.
    assert!(figure(&outcome, "others' p99 before the kill") > 0.0);
}

#[test]
fn after_churn_nothing_is_left() {
    let outcome = run("soak --duration 4s --rate 10 --idle 3s --every 500ms --seed 5");
    assert!(figure(&outcome, "sessions opened") > 0.0);
    for what in [
        "keys in Redis",
        "sessions on the nodes",
        "open streams",
        "running calls",
    ] {
        assert_eq!(verdict(&outcome, what), Some(true), "{what}");
    }
}

#[test]
fn large_bodies_come_back_whole_and_their_cost_is_judged() {
    let outcome = run(
        "payload --sizes 1048576,1024 --sessions 2 --warmup 100ms --duration 1s --rounds 1 --clients 2,4 --no-cluster",
    );
    assert!(figure(&outcome, "floor, 1048576 B: CPU a byte") > 0.0);
    assert!(
        figure(
            &outcome,
            "shoal modern, 1024 B: CPU a byte over the floor's"
        ) > 0.0
    );
    assert!(verdict(&outcome, "shoal legacy, 1048576 B").is_some());
    assert!(verdict(&outcome, "peak memory").is_some());
}
