//! Resuming clients against a correct server and against servers with one fault each.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

mod server;

use std::net::SocketAddr;
use std::process::Command;

use server::Fault;

async fn resume(fault: Fault) -> (bool, String) {
    let address: SocketAddr = server::start(fault).await;
    let ran = tokio::task::spawn_blocking(move || {
        Command::new(env!("CARGO_BIN_EXE_loadtest"))
            .args(["resume", "--url", &format!("http://{address}/mcp")])
            .args(["--clients", "8", "--duration", "3s", "--seed", "11"])
            .args(["--max-steps", "12", "--max-interval", "20ms"])
            .args(["--pid", &std::process::id().to_string()])
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    (ran.status.success(), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_keeps_its_promises_passes() {
    let (passed, said) = resume(Fault::None).await;
    assert!(passed, "{said}");
    assert!(
        !said.contains(" 0 resumes") && !said.contains(" 0 updates"),
        "{said}"
    );
    assert!(said.contains("server memory"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_fault_is_found() {
    let planted = [
        (Fault::LosesOnResume, "Lost"),
        (Fault::LosesInLog, "Lost"),
        (Fault::RepeatsOnResume, "RepeatedId"),
        (Fault::RepeatsInLog, "Duplicated"),
        (Fault::Reorders, "OutOfOrder"),
        (Fault::AnswersTwice, "ExtraAnswer"),
        (Fault::Forgets, "RefusedResume"),
    ];
    let runs = planted.map(|(fault, name)| async move { (fault, name, resume(fault).await) });
    for (fault, name, (passed, said)) in futures::future::join_all(runs).await {
        let found = said.contains(&format!("\n{name}: "));
        assert!(!passed && found, "{fault:?}: {said}");
    }
}
