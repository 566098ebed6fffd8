//! `load` against Shoal itself, with all its options. Build the server first, so that it is next to
//! the load tool: `cargo build -p shoal-node --bin shoal`.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

mod common;

use std::process::Command;

use common::{LOADTEST, Server, figure, run, said};
use serde_json::Value;

fn load(server: &Server, mode: &str, more: &str) -> Value {
    let mut command = Command::new(LOADTEST);
    command
        .args([
            "load",
            "--url",
            &server.url,
            "--mode",
            mode,
            "--warmup",
            "200ms",
        ])
        .args(["--pid", &server.child.id().to_string()])
        .args(more.split_whitespace());
    let (ran, result) = run(&mut command, &format!("shoal-{}", server.child.id()));
    assert!(ran.status.success(), "{mode} {more}: {}", said(&ran));
    result
}

#[test]
fn shoal_answers_every_kind_of_call_in_both_eras() {
    let server = Server::shoal();
    let mix = "echo=4,payload:1MiB=1,progress:10=2,elicitation=2,journaled=2,update=1";
    for (mode, mix) in [
        ("legacy", format!("{mix},count=2")),
        ("modern", mix.to_owned()),
    ] {
        let more = format!("--sessions 8 --duration 4s --listeners 3 --slow-readers 3 --mix {mix}");
        let result = load(&server, mode, &more);
        assert!(figure(&result, "calls answered") > 0.0);
        assert!(figure(&result, "server memory at the end") > 0.0);
        let whole = "slow readers that got all of their stream";
        assert!(
            result.to_string().contains(whole) || result.to_string().contains("the server cut off")
        );
    }
}

#[test]
fn shoal_keeps_up_with_ramps_and_churn() {
    let server = Server::shoal();
    let result = load(
        &server,
        "legacy",
        "--sessions 16 --duration 4s --rate 20..60 --ramp-steps 2 --churn 10",
    );
    assert!(figure(&result, "sessions opened, used and ended") > 0.0);
    let due = result["latencies"][0]["count"].as_u64().unwrap();
    assert_eq!(due, 160, "{result}");
    let result = load(
        &server,
        "modern",
        "--clients 2..8 --ramp-steps 2 --duration 2s",
    );
    assert!(figure(&result, "8 sessions: calls a second") > 0.0);
}
