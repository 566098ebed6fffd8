//! Resuming clients against a correct server and against servers with one fault each.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

#[path = "../common/mod.rs"]
mod common;
mod server;

use std::net::SocketAddr;
use std::process::Command;

use common::{LOADTEST, figure, run, verdict};
use serde_json::Value;
use server::Fault;

async fn resume(fault: Fault) -> (bool, Value) {
    let address: SocketAddr = server::start(fault).await;
    tokio::task::spawn_blocking(move || {
        let mut command = Command::new(LOADTEST);
        command
            .args(["resume", "--url", &format!("http://{address}/mcp")])
            .args(["--clients", "8", "--duration", "3s", "--seed", "11"])
            .args(["--max-steps", "12", "--max-interval", "20ms"])
            .args(["--pid", &std::process::id().to_string()]);
        let (ran, outcome) = run(&mut command, &format!("resume-{fault:?}"));
        (ran.status.success(), outcome)
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_keeps_its_promises_passes() {
    let (passed, outcome) = resume(Fault::None).await;
    assert!(passed, "{outcome}");
    for some in [
        "streams resumed",
        "notifications on GET streams",
        "finished streams requested again",
    ] {
        assert!(figure(&outcome, some) > 0.0, "{some}: {outcome}");
    }
    assert_eq!(verdict(&outcome, "server: slope of memory"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_fault_is_found() {
    let planted = [
        (Fault::LosesOnResume, "Lost"),
        (Fault::LosesInLog, "Lost"),
        (Fault::RepeatsOnResume, "Duplicated"),
        (Fault::RepeatsInLog, "Duplicated"),
        (Fault::Reorders, "OutOfOrder"),
        (Fault::AnswersTwice, "Duplicated"),
        (Fault::Forgets, "Forgotten"),
    ];
    let runs = planted.map(|(fault, name)| async move { (fault, name, resume(fault).await) });
    for (fault, name, (passed, outcome)) in futures::future::join_all(runs).await {
        let violations = outcome["violations"].as_array().unwrap();
        let found = violations.iter().any(|violation| violation["what"] == name);
        assert!(!passed && found, "{fault:?}: {violations:?}");
    }
}
